"""Takes a failed pass through a loop body back and lets the body run again, under the hunt, without stepping."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from torch import nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import _disable_current_modes

from nanlab.detect.guarding import distributed
from nanlab.detect.guarding.failure import Failure
from nanlab.detect.guarding.firstlook import BadAtStart
from nanlab.detect.guarding.watcher import Pass, StepWatcher
from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.report import Report
from nanlab.detect.patching import zero_grad_off
from nanlab.detect.replay.patch import patches
from nanlab.detect.replay.replay import compiled_code, why_not
from nanlab.detect.replay.step import eager
from nanlab.detect.state.buffers import Buffers
from nanlab.detect.state.checkpoint import Checkpoint
from nanlab.detect.state.nesting import tensors
from nanlab.detect.state.randomness import RandomState
from nanlab.detect.trace.tracer import Tracer


@dataclass(slots=True)  # not frozen: one is made every step
class Start:
    """What one pass began with: the batch, as it was yielded and not a copy, and the random state."""

    batch: object
    random: RandomState

    def in_place(self) -> list[str]:
        """A warning where the batch may not be what it was: its tensors have been written to since they were made."""
        if not any(not t.is_inference() and t._version for t in tensors(self.batch)):
            return []
        return ["the batch as it was, if the loop body changes it in place (x = x.clone() keeps it)"]


class Rerun:
    """One failed step of a guarded loop: the passes through the body that made it, and how to run them again."""

    def __init__(
        self,
        watcher: StepWatcher,
        model: nn.Module | None,
        optimizers: Sequence[Optimizer],
        starts: Sequence[Start],
        buffers: Buffers,
    ) -> None:
        self.watcher, self.model, self.optimizers = watcher, model, list(optimizers)
        self.starts, self.buffers = list(starts), buffers
        self.tracer: Tracer | None = None

    def drop(self, failure: Failure | None = None) -> None:
        """Gradients to None; buffers, random state and the optimizers' settings to what they were before the step."""
        for p in self.watcher.every_param():
            p.grad = None
        self.buffers.put_back()
        self.starts[0].random.restore()
        if failure is not None:
            failure.settings.restore()

    def run(self, failure: Failure) -> Generator[object, None, Report]:
        """Yields the batches again, under the hunt, and returns the report. Where the eager replay is finite and
        compiled code is loaded, once more compiled."""
        self.drop(failure)
        found = yield from self.once(failure, hunting=True)
        if found is None and compiled_code():
            again = yield from self.once(failure, hunting=False)
            if again is not None:
                note = f"Run eagerly, the step is finite; compiled, its {failure.where} is not."
                found = Report(
                    "only-when-compiled", step=failure.step, where=failure.where, sink=failure.where, notes=[note]
                )
        if found is None:
            found = self._not_reproduced(failure)
        return distributed.compare(found)

    def confirm(self, failure: Failure, report: Report) -> Generator[object, None, None]:
        """Yields the batches again with the operands before the origin mended, in up to three ways; a step that is
        finite then confirms the origin. An operand is mended where it lies, which may be a weight or the batch: copies
        of both are kept meanwhile and put back."""
        if report.target is None:
            return
        batches = [t for start in self.starts for t in tensors(start.batch)]
        held = Checkpoint([*self.watcher.every_param(), *batches], ())
        for mode in patches(report.target):
            again = yield from self.once(failure, hunting=False, patch=mode)
            held.restore()
            if again is None and mode.count:
                report.confirmed_by.append("operand patched")
                return

    def once(
        self, failure: Failure, hunting: bool, patch: AbstractContextManager | None = None
    ) -> Generator[object, None, Report | None]:
        """One replay. Optimizers do not step in it; those that had stepped before the failure are passed over that
        often, so that what follows them meets the same weights."""
        found: list[Report] = []
        made, watcher = dict(failure.made), self.watcher
        with ExitStack() as stack:
            stack.callback(self._settle, failure)
            stack.enter_context(distributed.alone(self.model))
            if len(self.starts) > 1:  # a body that accumulates by its own counter, which an ``enumerate`` around the
                owners = [one for one in (*self.optimizers, self.model) if one is not None]  # guard moves on, would
                stack.enter_context(zero_grad_off(owners))  # clear the gradients in the middle of it
            if hunting:
                self.tracer = stack.enter_context(eager_tracer(self.model, self.optimizers, self.starts[-1].batch))
            if patch is not None:
                stack.enter_context(patch)
            stack.enter_context(watcher.replaying(lambda seen: found.append(self._report(seen, failure, hunting)),
                                                  hears_grad=patch is None))  # fmt: skip
            for start in self.starts:
                watcher.now = Pass(made, failure.looks) if made and start is self.starts[-1] else Pass()
                start.random.restore()
                yield start.batch
                watcher.end()
                if found:
                    break
        return found[0] if found else None

    def _settle(self, failure: Failure) -> None:
        self.tracer = None
        self.drop(failure)

    def first_read(self, bad: BadAtStart) -> Generator[object, None, Report]:
        """Yields the first batch under the hunt, without stepping, and reports who reads the bad tensors first."""
        start = self.starts[0]
        with ExitStack() as stack:
            stack.callback(self.drop)
            tracer = stack.enter_context(eager_tracer(self.model, self.optimizers, start.batch))
            tracer.readers.wait_for(list(bad.bad.values()))
            stack.enter_context(self.watcher.replaying(lambda seen: None))
            yield start.batch
        return bad.report(tracer)

    def _report(self, seen: Failure, failure: Failure, hunting: bool) -> Report:
        if not hunting or self.tracer is None:
            return Report("non-finite", step=failure.step, where=seen.where, sink=seen.where)
        with _disable_current_modes():
            report = explain(self.tracer, seen.where, seen.tensors, step=failure.step, model=self.model,
                             optimizer=self.optimizers, batch=self.starts[-1].batch)  # fmt: skip
        if len(self.starts) > 1:
            report.notes.append(f"The replay ran the {len(self.starts)} micro-batches of the step.")
        return report

    def _not_reproduced(self, failure: Failure) -> Report:
        reasons = [f"not captured: {what}" for start in self.starts for what in start.in_place()] + why_not()
        notes = [f"The {failure.where} of step {failure.step} was not finite, and finite when the step ran again."]
        return Report("not-reproduced", step=failure.step, where=failure.where, sink=failure.where,
                      notes=notes + [f"{reason[0].upper()}{reason[1:]}." for reason in reasons])  # fmt: skip


@contextmanager
def eager_tracer(model: nn.Module | None, optimizers: list[Optimizer], batch: object) -> Iterator[Tracer]:
    """A tracer with compiled functions run eagerly for as long as it is open."""
    with ExitStack() as stack:
        if compiled_code():
            stack.enter_context(eager())
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "Using `torch.compile", UserWarning)  # the tracer's hooks are meant
        yield stack.enter_context(Tracer(model, optimizers, batch))
