"""Watches an unchanged script: hunts every step, or guards it with snapshots where hunting costs too much."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.utils._python_dispatch import _disable_current_modes

from nanlab.detect import patching
from nanlab.detect.guarding.failure import Failure
from nanlab.detect.guarding.firstlook import BadAtStart, first_look
from nanlab.detect.guarding.history import History
from nanlab.detect.guarding.sentry import Sentry
from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.past import LayeredTags, read_by_script
from nanlab.detect.origin.report import Report
from nanlab.detect.patching import innermost
from nanlab.detect.replay.step import WRITTEN
from nanlab.detect.scripts.copies import Copies
from nanlab.detect.scripts.pace import Pace
from nanlab.detect.scripts.script import Stopped
from nanlab.detect.scripts.snapshot import possible
from nanlab.detect.state.buffers import HealthyBuffers
from nanlab.detect.state.training import gradients, is_lazy, leaves_of
from nanlab.detect.state.values import is_finite
from nanlab.detect.trace.tracer import Tracer


class ScriptWatch(Sentry):
    """Context manager around the run of a script. It learns modules and optimizers as they are used. On a failure it
    builds the report, keeps it in `found`, and raises `Stopped` at the script's own line.

    every_step: never give way to the guard. from_step: leave the script alone until that many optimizer steps were
    made.
    """

    def __init__(self, every_step: bool = False, from_step: int = 0) -> None:
        super().__init__([], History(), self._found)
        self.every_step, self.from_step = every_step, from_step
        self.hears_after = self.look_always = self._look_early = True
        self.found: Report | None = None
        self.tracer: Tracer | None = None
        self.pace, self.copies = Pace(), Copies()
        self.why_no_snapshots: str | None = None
        self.backwards = 0
        self._step_began = 0  # the tracer's number of operations then
        self._bad_start: BadAtStart | None = None
        self._roots: list[nn.Module] = []
        self._healthy = HealthyBuffers()
        self._known: set[int] = set()
        self._leaves: list[Tensor] = []
        self._pending: Report | None = None
        self._between = True  # no forward pass since the last step ended
        self._by_hand = True  # no optimizer was made so far: a backward call then stands for a step
        self._began: float | None = None
        self._undo: list[Callable[[], None]] = []

    # coming and going

    def __enter__(self) -> ScriptWatch:
        self._undo += [
            patching.on_call(self._before_forward),
            patching.on_step(self.before_step, self.after_step),
            patching.on_zero_grad(self._step_start),
            patching.on_optimizer(self._optimizer_made),
            patching.on_batch(self._batch_came),
            patching.listen(self),
        ]
        if self.from_step == 0:
            self._trace(True)
        return self

    def __exit__(self, *exc: object) -> None:
        self._trace(False)
        while self._undo:
            self._undo.pop()()
        self.copies.drop()

    def _trace(self, on: bool) -> None:
        if on and self.tracer is None:
            self.tracer = Tracer()
            self.tracer.tags = LayeredTags()
            for root in self._roots:
                self.tracer.saw_root(root)
            for one in self.optimizers:
                self.tracer.saw_optimizer(one)
            self.tracer.__enter__()
        elif not on and self.tracer is not None:
            self.tracer.__exit__(None, None, None)
            self.tracer = None
        self.look_always = self._look_early = self.tracer is not None

    # the start of a step

    def _before_forward(self, module: nn.Module, args: tuple) -> None:
        if id(module) not in self._known:
            self._meet(module)
        self._step_start()
        self._between = False

    def _meet(self, module: nn.Module) -> None:
        """A module called outside any other for the first time: looks at its weights before they are used."""
        self._known.update(id(m) for m in module.modules())
        self._roots.append(module)
        self.copies.mend(module)
        self._healthy.meet(module)
        if self.from_step == 0 and not any(self.history.steps.values()) and not is_lazy(module):
            with _disable_current_modes():
                bad = first_look(module, [])
            if bad is not None and self.tracer is not None:
                self._bad_start = bad
                self.tracer.watch_readers(list(bad.bad.values()))

    def _step_start(self) -> None:
        """Called wherever a step may begin; acts once a step, at the first of them."""
        if not self._between:
            return
        self._between = False
        if self.failure is None:
            self.begin()
        began = self.tracer.first_differentiable if self.tracer is not None else None
        self._seal(began)
        if self.tracer is not None and began is None:
            self._step_began = self.tracer.number
            self.tracer.losses.clear()
        elif began is not None:  # the forward pass came before ``zero_grad``
            self._step_began = began
        if self.copies.woken is not None:
            self.copies.end_after(self.step())
        elif self.found is None:
            self._choose()

    def _step_ended(self) -> None:
        self._between = True
        if self.tracer is not None:
            self.tracer.first_differentiable = None

    def _optimizer_made(self) -> None:
        self._by_hand = False
        if self.tracer is not None and self._between:
            self.tracer.first_differentiable = None

    def _batch_came(self, batch: object) -> object:
        """A batch that a DataLoader hands over is the input of what follows, whatever its collate function did."""
        self._seal()
        return batch

    def _seal(self, before: int | None = None) -> None:
        if self.tracer is not None:
            self.tracer.tags.seal(before)

    def _choose(self) -> None:
        """How the coming step is run."""
        if self.from_step:
            self._trace(self.step() >= self.from_step)
            return
        if self.every_step or self.why_no_snapshots:
            return
        now = time.thread_time()
        took, self._began = now - (self._began or now), now
        mode = self.pace.took(took)
        if mode == "plain" and (why := possible()):
            self.why_no_snapshots, mode = why, "hunt"
        self._trace(mode == "hunt")
        wanted = mode == "plain" or self.copies.cheap(self.pace.spent)
        if wanted and self.copies.due(self.step(), self.pace.plain_step) and self.copies.take(self.step()):
            self._woken()
        self._began = time.thread_time()

    def _woken(self) -> None:
        """In a copy: hunts, or runs with the operands before a known origin mended."""
        self.failure = self._pending = self._bad_start = None
        self._trace(self.copies.patch is None)
        self.look_always = True
        self.hear_grad = self.copies.patch is None  # a patch differentiates what it mends
        self.copies.begin(self._roots)

    # what the looks find

    def before_backward(self, losses: Sequence[Tensor]) -> None:
        self._raise_pending()
        self._raise_bad_start()
        if not self.optimizers:
            self._leaves = leaves_of(losses)
        super().before_backward(losses)

    def after_backward(self) -> None:
        self.backwards += 1
        if self._look_early:
            super().after_backward()
        if self._by_hand:
            self.history.batches += 1
            self._step_ended()

    def every_param(self) -> list[Tensor]:
        roots = [p for root in self._roots for p in root.parameters() if not nn.parameter.is_lazy(p)]
        return list({id(p): p for p in [*super().every_param(), *roots, *self._leaves]}.values())

    def before_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple | None:
        if innermost() is not self:  # a guard in the script looks after its own steps
            return None
        self._learn(optimizer)
        self._raise_bad_start()
        if self._pending is not None:
            self._raise_pending()
        return super().before_step(optimizer, args, kwargs)

    def _learn(self, optimizer: Optimizer) -> None:
        """An optimizer's first step: looks at weights that no module showed, and at a state that was loaded."""
        if any(optimizer is one for one in self.optimizers):
            return
        self.optimizers.append(optimizer)
        if self.from_step == 0 and self._bad_start is None:
            with _disable_current_modes():
                self._bad_start = first_look(None, [optimizer])

    def on_scaler_step(self, scaler: GradScaler, optimizer: Optimizer, stepped: bool) -> None:
        self._learn(optimizer)
        self._step_ended()
        super().on_scaler_step(scaler, optimizer, stepped)

    def after_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        self._step_ended()
        if innermost() is self:
            super().after_step(optimizer, args, kwargs)
            self._look_at_buffers(self.step(optimizer) - 1)

    def _look_at_buffers(self, step: int) -> None:
        """Running statistics and the like that were finite and no longer are; an infinity that the program writes on
        purpose, a mask, is let be."""
        if self.tracer is None or self.found is not None:
            return
        with _disable_current_modes():
            bad = self._healthy.turned_bad()
            report = explain(self.tracer, "buffer", bad, step=step) if bad else None
        if report is not None and report.form not in WRITTEN:
            self._stop(report)

    def _raise_bad_start(self) -> None:
        """Weights that were bad before the first forward pass and still are when the first step is due."""
        bad, self._bad_start = self._bad_start, None
        if bad is not None and (bad := bad.still()) is not None:
            with _disable_current_modes():
                report = bad.report(self.tracer, self.step())
                note = self.tracer.tags.note_on(list(bad.bad.values())) if self.tracer is not None else None
            report.notes += [note] if note else []
            self._stop(report)

    def _raise_pending(self) -> None:
        """Gradients that were bad after backward; they count if they still are when they are used or added to, or have
        reached the weights by hand meanwhile."""
        pending, self._pending = self._pending, None
        if pending is not None:
            params = self.every_param()
            if not all(map(is_finite, gradients(params))) or not all(is_finite(p.detach()) for p in params):
                self._stop(pending)

    def _found(self, failure: Failure) -> None:
        self.failure = None
        if self.found is not None:  # the script caught us and went on
            return
        if self.copies.patch is not None:
            self.copies.answer(None)
        if self.tracer is None:
            self._stop(self.copies.replayed(failure))
        with _disable_current_modes():
            report = explain(self.tracer, failure.where, failure.tensors, step=failure.step)
            note = self.tracer.tags.note_on(failure.tensors)
        report.notes += failure.notes + ([note] if note else [])
        if failure.where == "gradient" and failure.optimizer is None:
            self._pending = report
        else:
            self._stop(report)

    def _stop(self, report: Report) -> None:
        self.copies.answer(report)
        if self.found is None:
            self.found = report
            self.copies.confirm(report)
            report.trajectory = self.history.trajectory.to_json()["rows"]
            verdict, evidence = self.history.trajectory.judge()
            report.notes.append(f"The run before it{' was ' + verdict if verdict != 'short' else ''}: {evidence}.")
            raise Stopped

    def exited(self, status: int) -> None:
        """The script called ``sys.exit``."""
        if status:
            self.stopped_itself(f"The script ended itself with exit status {status}.")

    def stopped_itself(self, how: str | None) -> None:
        """The script ended without us: looks at the numbers that it may have ended for."""
        if self.tracer is not None and self.found is None:
            self.found = read_by_script(self.tracer, self.step(), self._step_began, how)

    def at_end(self) -> None:
        """The script ended: what was waiting for a step that never came, or was only ever read by the script."""
        with suppress(Stopped):
            self._raise_pending()
            self._raise_bad_start()
            self.copies.end()
