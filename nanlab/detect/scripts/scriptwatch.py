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
from nanlab.detect.guarding import distributed
from nanlab.detect.guarding.failure import Failure
from nanlab.detect.guarding.firstlook import BadAtStart, first_look
from nanlab.detect.guarding.history import History
from nanlab.detect.guarding.watcher import PASSING, Pass, StepWatcher
from nanlab.detect.origin.report import Report
from nanlab.detect.replay.step import WRITTEN
from nanlab.detect.scripts.children import Children
from nanlab.detect.scripts.copies import Copies
from nanlab.detect.scripts.ending import Ending
from nanlab.detect.scripts.held import Held
from nanlab.detect.scripts.pace import Pace
from nanlab.detect.scripts.script import Stopped
from nanlab.detect.scripts.skips import Skips
from nanlab.detect.scripts.snapshot import possible
from nanlab.detect.scripts.stephunt import StepHunt
from nanlab.detect.scripts.trained import Trained
from nanlab.detect.state.screen import non_finite
from nanlab.detect.state.training import gradients, is_lazy, parameters
from nanlab.detect.state.values import is_finite

SCALED = ("overflow", "inf-inf", "0*inf")  # forms of what a smaller loss scale cures


class ScriptWatch(patching.Listener):
    """Context manager around the run of a script. It learns modules and optimizers as they are used. On a failure it
    builds the report, keeps it in `found`, and raises `Stopped` at the script's own line.

    A step is a failure once something uses it: an optimizer that changes weights, a gradient that is added to, an end
    of the script. One that the script drops, or whose optimizer changes nothing, is counted in `skips`, and stops the
    script only with `stop_at_skips`. every_step: never give way to the guard. from_step: leave the script alone until
    that many optimizer steps were made.
    """

    hears_after = True

    def __init__(self, every_step: bool = False, from_step: int = 0, stop_at_skips: bool = False) -> None:
        self.every_step, self.from_step, self.stop_at_skips = every_step, from_step, stop_at_skips
        self.found: Report | None = None
        self.skips, self.children = Skips(), Children(self._in_child)
        self.why_no_snapshots: str | None = None
        self.pace, self.copies = Pace(), Copies()
        self.hunt = StepHunt()
        self._trained = Trained()
        self._watcher = StepWatcher([], History(), self._failed, self._trained.parameters, early=True)
        self._early = self._watcher.thorough = True  # unless the guard takes over
        self._bad_start: BadAtStart | None = None
        self._held: Held | None = None
        self._chosen = False  # how the coming step is run
        self._trains = False  # whether it has called backward
        self._between = True  # no forward pass since the last step ended
        self._by_hand = True  # no optimizer was made so far: a backward call then stands for a step
        self._began: float | None = None
        self._undo: list[Callable[[], None]] = []

    @property
    def steps(self) -> int:
        """Optimizer steps that the script has made."""
        return self._watcher.step()

    @property
    def left_to_guard(self) -> bool:
        """Whether the guard took over from the hunt."""
        return bool(self.copies.snapshots.taken) and self.pace.decided and self.pace.mode == "plain"

    # coming and going

    def __enter__(self) -> ScriptWatch:
        self._undo += [
            patching.on_call(self._before_forward),
            patching.on_step(self._before_step, self._after_step),
            patching.on_zero_grad(self._step_start),
            patching.on_optimizer(self._optimizer_made),
            patching.on_transform(self._transformed),
            self.hunt.listen(),
            self.children.listen(),
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

    def _in_child(self) -> None:
        """In a process that the script forked: leaves it alone."""
        self.copies.forget()
        self._trace(False)
        while self._undo:
            self._undo.pop()()

    def _trace(self, on: bool) -> None:
        if on:
            self.hunt.turn_on(self._trained.roots, self._watcher.optimizers)
        else:
            self.hunt.turn_off()
        self._early = self._watcher.thorough = on

    # the start and the end of a step

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
            if bad is not None and self.hunt.tracer is not None:
                self._bad_start = bad
                self.hunt.tracer.readers.wait_for(list(bad.bad.values()))

    def _step_start(self) -> None:
        """Called wherever the operations of a step may begin; acts once a step, at the first of them."""
        if not self._between:
            return
        self._between = False
        if self._watcher.now.failure is None:
            self._watcher.now = Pass()
        self.hunt.begins()
        if not self._chosen:
            self._choose()

    def _step_ended(self, by_hand: bool = False) -> None:
        """What stands first in the loop belongs to the next step, so that how it is run is chosen now."""
        self._between = True
        self.hunt.ended(by_hand)
        if self.copies.woken is not None:
            self.copies.end_after(self.steps)
        elif self.found is None:
            self._choose()

    def _optimizer_made(self) -> None:
        self._by_hand = False

    def _choose(self) -> None:
        """How the coming step is run."""
        self._chosen = True
        if self.copies.woken is not None:
            return
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
        self._watcher.now.failure = self._held = self._bad_start = None
        hunting = self.copies.patch is None
        self._trace(hunting)
        self._watcher.thorough = True
        self._watcher.hears_grad = hunting  # a patch differentiates what it mends
        self.copies.begin(self._trained.roots)

    # what is heard goes to the watcher

    def before_backward(self, losses: Sequence[Tensor]) -> None:
        self._settle_held()
        self._raise_bad_start()
        if not self._watcher.optimizers:
            self._trained.saw_losses(losses)
        self._watcher.before_backward(losses)

    def after_backward(self) -> None:
        if self._watcher.mode is PASSING:
            return
        self._trains = True
        if self._early:
            self._watcher.after_backward()
        if self._by_hand:
            self._step_by_hand()

    def on_grad(self, outputs: Sequence[Tensor], create_graph: bool) -> None:
        self._settle_held()
        self._watcher.on_grad(outputs, create_graph)

    def after_grad(self, outputs: Sequence[Tensor], gradients: Sequence[Tensor], create_graph: bool) -> None:
        """Gradients that the script takes itself are those of a step where no optimizer was made."""
        if self._by_hand and not create_graph and len(outputs) == 1 and outputs[0].numel() == 1:
            with _disable_current_modes():
                bad = [g for g in gradients if not is_finite(g)]
            if bad:
                self._failed(Failure("gradient", bad, self.steps))
            self._step_by_hand()

    def _step_by_hand(self) -> None:
        self._watcher.history.batches += 1
        self._step_ended(by_hand=True)

    def _transformed(self) -> None:
        """Gradients of ``torch.func``, which only the script sees; nothing is turned on or off inside its levels."""
        if self._by_hand:
            self._watcher.history.batches += 1
            self._between = True
            self.hunt.ended(by_hand=True)

    def on_scale(self, scaler: GradScaler, outputs: object) -> None:
        self._settle_held()
        self._watcher.on_scale(scaler, outputs)

    def on_scaler_step(self, scaler: GradScaler, optimizer: Optimizer, stepped: bool) -> None:
        self._learn(optimizer)
        if not stepped and self.hunt.on and self.found is None:
            self._no_scale_cures(optimizer)
        self._watcher.on_scaler_step(scaler, optimizer, stepped)
        if not stepped:
            self._held = None
            self._step_ended()

    def _no_scale_cures(self, optimizer: Optimizer) -> None:
        """A step that the scaler skips is a failure where its gradients would be bad at any scale."""
        with _disable_current_modes():
            bad = non_finite(gradients(parameters(optimizer)))
        if bad:
            report = self.hunt.explain("gradient", bad, self._watcher.step(optimizer))
            if report.line is not None and report.form is not None and not report.form.startswith(SCALED):
                self._stop(report)

    def on_scaler_update(self, scaler: GradScaler) -> None:
        self._watcher.on_scaler_update(scaler)

    def _before_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        if patching.innermost() is not self:  # a guard in the script looks after its own steps
            return None
        self._learn(optimizer)
        self._raise_bad_start()
        given = self._watcher.before_step(optimizer, args, kwargs)
        if self._held is not None:
            self._is_used(self._held, optimizer)
        return given

    def _is_used(self, held: Held, optimizer: Optimizer) -> None:
        """A bad step that `optimizer` is about to make: whether it does shows after it."""
        params = self._watcher.every_param()
        if held.failure.where == "gradient" and not held.used(params, gradients(params)):
            self._held = None  # the script has mended them
        elif self.stop_at_skips:
            self._stop_at(held)
        else:
            held.before_step(optimizer)

    def _learn(self, optimizer: Optimizer) -> None:
        """An optimizer's first step: looks at weights that no module showed, and at a state that was loaded."""
        if any(optimizer is one for one in self._watcher.optimizers):
            return
        self._watcher.optimizers.append(optimizer)
        if self.from_step == 0 and self._bad_start is None:
            with _disable_current_modes():
                self._bad_start = first_look(None, [optimizer])

    def _after_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        if patching.innermost() is self:
            self._after_bad_step(optimizer)
            self._watcher.after_step(optimizer, args, kwargs)
            self._look_at_buffers(self._watcher.step(optimizer) - 1)
        self._step_ended()

    def _after_bad_step(self, optimizer: Optimizer) -> None:
        held, asked = self._held, self.hunt.asked()
        if held is not None:
            if held.changed(optimizer):
                self._stop_at(held)
            self._skipped(held)
        elif asked is not None and asked.shape == () and self.hunt.is_made(asked):
            self.skips.add(self.steps, self.hunt.explain("loss", [asked], self.steps))

    # what the looks find

    def _look_at_buffers(self, step: int) -> None:
        """Buffers that turned bad; an infinity that the program writes on purpose, a mask, is let be."""
        if not self.hunt.on or self.found is not None:
            return
        with _disable_current_modes():
            bad = self._trained.buffers_turned_bad()
        if bad and (report := self.hunt.explain("buffer", bad, step)).form not in WRITTEN:
            self._stop(report)

    def _raise_bad_start(self) -> None:
        """Weights that were bad before the first forward pass and still are when the first step is due."""
        bad, self._bad_start = self._bad_start, None
        if bad is not None and (bad := bad.still()) is not None:
            with _disable_current_modes():
                report = bad.report(self.hunt.tracer, self.steps)
            self._stop(report)

    def _settle_held(self) -> None:
        """Another loss is about to run backward: what of a bad step is left now is added to; else it was dropped."""
        held = self._held
        if held is None:
            return
        params = self._watcher.every_param()
        grads = gradients(params)
        if held.used(params, grads):
            self._stop_at(held)
        if held.failure.where == "gradient" or held.cleared(grads):
            self._skipped(held)

    def _skipped(self, held: Held) -> None:
        if self.stop_at_skips:
            self._stop_at(held)
        self._held = None
        self.hunt.forget_asked()
        self.skips.add(held.failure.step, held.report)

    def _failed(self, failure: Failure) -> None:
        self._watcher.now.failure = None
        if self.found is not None:  # the script caught us and went on
            return
        if self.copies.patch is not None:
            self.copies.answer(None)
        at_once = failure.spoilt or failure.notes or self._watcher.now.saw_scaler or self._watcher.in_closure
        if self._held is not None and not at_once:
            return
        report = self._explain(failure) if self.hunt.on else None
        held = Held(failure, report)
        if at_once or failure.where not in ("loss", "gradient"):
            self._stop_at(held)
        self._held = held

    def _explain(self, failure: Failure) -> Report:
        report = self.hunt.explain(failure.where, failure.tensors, failure.step)
        report.notes += failure.notes
        return report

    def _stop_at(self, held: Held) -> None:
        self._held = None
        self._stop(held.report if held.report is not None else self.copies.replayed(held.failure))

    def _stop(self, report: Report) -> None:
        self.copies.answer(report)
        if self.found is None:
            self.found = _of_all_ranks(report)
            self.copies.confirm(report)
            self._watcher.history.tell(report)
            raise Stopped

    # the end of the script

    def ended(self, ending: Ending | None) -> None:
        """The script ended: what was waiting for a step that never came, or was only ever read by the script. None
        where an error of nanlab's ended it."""
        if ending is None:
            self.copies.end()
            return
        with suppress(Stopped):
            if (held := self._held) is not None:
                if ending.by_itself or not held.cleared(gradients(self._watcher.every_param())):
                    self._stop_at(held)
                self._skipped(held)
            self._raise_bad_start()
            self.copies.end()
            if self.found is None and self.hunt.on:
                self.found = ending.report(self.hunt, self.steps, backward=self._trains)


def _of_all_ranks(report: Report) -> Report:
    """The report, compared with those of the other ranks. Gradients that came in bad from outside this process' own
    operations are what the all-reduce brought."""
    if report.sink == "gradient" and report.form in ("nan_in", "inf_in") and distributed.running():
        report.verdict = "finite"
        compared = distributed.compare(report)
        report.verdict = "non-finite"
        return compared
    return distributed.compare(report)
