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
from nanlab.detect.guarding.watcher import PASSING, Pass, StepWatcher
from nanlab.detect.origin.report import Report
from nanlab.detect.replay.step import WRITTEN
from nanlab.detect.scripts.copies import Copies
from nanlab.detect.scripts.pace import Pace
from nanlab.detect.scripts.script import Stopped
from nanlab.detect.scripts.snapshot import possible
from nanlab.detect.scripts.stephunt import StepHunt
from nanlab.detect.scripts.trained import Trained
from nanlab.detect.state.training import gradients, is_lazy
from nanlab.detect.state.values import is_finite


class ScriptWatch(patching.Listener):
    """Context manager around the run of a script. It learns modules and optimizers as they are used. On a failure it
    builds the report, keeps it in `found`, and raises `Stopped` at the script's own line.

    every_step: never give way to the guard. from_step: leave the script alone until that many optimizer steps were
    made.
    """

    hears_after = True

    def __init__(self, every_step: bool = False, from_step: int = 0) -> None:
        self.every_step, self.from_step = every_step, from_step
        self.found: Report | None = None
        self.backwards = 0
        self.why_no_snapshots: str | None = None
        self.pace, self.copies = Pace(), Copies()
        self._hunt, self._trained = StepHunt(), Trained()
        self._watcher = StepWatcher([], History(), self._failed, self._trained.parameters, early=True)
        self._early = self._watcher.thorough = True  # unless the guard takes over
        self._bad_start: BadAtStart | None = None
        self._pending: Report | None = None
        self._between = True  # no forward pass since the last step ended
        self._by_hand = True  # no optimizer was made so far: a backward call then stands for a step
        self._began: float | None = None
        self._undo: list[Callable[[], None]] = []

    @property
    def steps(self) -> int:
        """Optimizer steps that the script has made."""
        return self._watcher.step()

    # coming and going

    def __enter__(self) -> ScriptWatch:
        self._undo += [
            patching.on_call(self._before_forward),
            patching.on_step(self._before_step, self._after_step),
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
        if on:
            self._hunt.turn_on(self._trained.roots, self._watcher.optimizers)
        else:
            self._hunt.turn_off()
        self._early = self._watcher.thorough = on

    # the start of a step

    def _before_forward(self, module: nn.Module, args: tuple) -> None:
        if self._trained.is_new(module):
            self._meet(module)
        self._step_start()
        self._between = False

    def _meet(self, module: nn.Module) -> None:
        """A module called outside any other for the first time: looks at its weights before they are used."""
        self._trained.meet(module)
        self.copies.mend(module)
        if self.from_step == 0 and not any(self._watcher.history.steps.values()) and not is_lazy(module):
            with _disable_current_modes():
                bad = first_look(module, [])
            if bad is not None and self._hunt.tracer is not None:
                self._bad_start = bad
                self._hunt.tracer.readers.wait_for(list(bad.bad.values()))

    def _step_start(self) -> None:
        """Called wherever a step may begin; acts once a step, at the first of them."""
        if not self._between:
            return
        self._between = False
        if self._watcher.now.failure is None:
            self._watcher.now = Pass()
        self._hunt.begins()
        if self.copies.woken is not None:
            self.copies.end_after(self.steps)
        elif self.found is None:
            self._choose()

    def _step_ended(self) -> None:
        self._between = True
        self._hunt.ended()

    def _optimizer_made(self) -> None:
        self._by_hand = False
        if self._between:
            self._hunt.ended()

    def _batch_came(self, batch: object) -> object:
        """A batch that a DataLoader hands over is the input of what follows, whatever its collate function did."""
        self._hunt.batch_came()
        return batch

    def _choose(self) -> None:
        """How the coming step is run."""
        if self.from_step:
            self._trace(self.steps >= self.from_step)
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
        if wanted and self.copies.due(self.steps, self.pace.plain_step) and self.copies.take(self.steps):
            self._woken()
        self._began = time.thread_time()

    def _woken(self) -> None:
        """In a copy: hunts, or runs with the operands before a known origin mended."""
        self._watcher.now.failure = self._pending = self._bad_start = None
        hunting = self.copies.patch is None
        self._trace(hunting)
        self._watcher.thorough = True
        self._watcher.hears_grad = hunting  # a patch differentiates what it mends
        self.copies.begin(self._trained.roots)

    # what is heard goes to the watcher

    def before_backward(self, losses: Sequence[Tensor]) -> None:
        self._raise_pending()
        self._raise_bad_start()
        if not self._watcher.optimizers:
            self._trained.saw_losses(losses)
        self._watcher.before_backward(losses)

    def after_backward(self) -> None:
        if self._watcher.mode is PASSING:
            return
        self.backwards += 1
        if self._early:
            self._watcher.after_backward()
        if self._by_hand:
            self._watcher.history.batches += 1
            self._step_ended()

    def on_grad(self, outputs: Sequence[Tensor], create_graph: bool) -> None:
        self._watcher.on_grad(outputs, create_graph)

    def on_scale(self, scaler: GradScaler, outputs: object) -> None:
        self._watcher.on_scale(scaler, outputs)

    def on_scaler_step(self, scaler: GradScaler, optimizer: Optimizer, stepped: bool) -> None:
        self._learn(optimizer)
        self._step_ended()
        self._watcher.on_scaler_step(scaler, optimizer, stepped)

    def on_scaler_update(self, scaler: GradScaler) -> None:
        self._watcher.on_scaler_update(scaler)

    def _before_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        if patching.innermost() is not self:  # a guard in the script looks after its own steps
            return None
        self._learn(optimizer)
        self._raise_bad_start()
        self._raise_pending()
        return self._watcher.before_step(optimizer, args, kwargs)

    def _learn(self, optimizer: Optimizer) -> None:
        """An optimizer's first step: looks at weights that no module showed, and at a state that was loaded."""
        if any(optimizer is one for one in self._watcher.optimizers):
            return
        self._watcher.optimizers.append(optimizer)
        if self.from_step == 0 and self._bad_start is None:
            with _disable_current_modes():
                self._bad_start = first_look(None, [optimizer])

    def _after_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        self._step_ended()
        if patching.innermost() is self:
            self._watcher.after_step(optimizer, args, kwargs)
            self._look_at_buffers(self._watcher.step(optimizer) - 1)

    # what the looks find

    def _look_at_buffers(self, step: int) -> None:
        """Buffers that turned bad; an infinity that the program writes on purpose, a mask, is let be."""
        if not self._hunt.on or self.found is not None:
            return
        with _disable_current_modes():
            bad = self._trained.buffers_turned_bad()
        if bad and (report := self._hunt.explain("buffer", bad, step)).form not in WRITTEN:
            self._stop(report)

    def _raise_bad_start(self) -> None:
        """Weights that were bad before the first forward pass and still are when the first step is due."""
        bad, self._bad_start = self._bad_start, None
        if bad is not None and (bad := bad.still()) is not None:
            with _disable_current_modes():
                report = bad.report(self._hunt.tracer, self.steps)
            report.notes += self._hunt.note_on(list(bad.bad.values()))
            self._stop(report)

    def _raise_pending(self) -> None:
        """Gradients that were bad after backward; they count if they still are when they are used or added to, or have
        reached the weights by hand meanwhile."""
        pending, self._pending = self._pending, None
        if pending is not None:
            params = self._watcher.every_param()
            if not all(map(is_finite, gradients(params))) or not all(is_finite(p.detach()) for p in params):
                self._stop(pending)

    def _failed(self, failure: Failure) -> None:
        self._watcher.now.failure = None
        if self.found is not None:  # the script caught us and went on
            return
        if self.copies.patch is not None:
            self.copies.answer(None)
        if not self._hunt.on:
            self._stop(self.copies.replayed(failure))
        report = self._hunt.explain(failure.where, failure.tensors, failure.step)
        report.notes += failure.notes + self._hunt.note_on(failure.tensors)
        if failure.where == "gradient" and failure.optimizer is None:
            self._pending = report
        else:
            self._stop(report)

    def _stop(self, report: Report) -> None:
        self.copies.answer(report)
        if self.found is None:
            self.found = report
            self.copies.confirm(report)
            self._watcher.history.tell(report)
            raise Stopped

    def exited(self, status: int) -> None:
        """The script called ``sys.exit``."""
        if status:
            self.stopped_itself(f"The script ended itself with exit status {status}.")

    def stopped_itself(self, how: str | None) -> None:
        """The script ended without us: looks at the numbers that it may have ended for."""
        if self.found is None:
            self.found = self._hunt.read_by_script(self.steps, how)

    def at_end(self) -> None:
        """The script ended: what was waiting for a step that never came, or was only ever read by the script."""
        with suppress(Stopped):
            self._raise_pending()
            self._raise_bad_start()
            self.copies.end()
