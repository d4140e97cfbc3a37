"""Runs one step again and again, each time with one thing changed: what makes it finite, taken away, is the cause.

What can be changed: the batch, or one sample of it; the operands before an operation, guarded; the width of the
numbers; weights and inputs that were bad from the start. Whoever runs a step again (``hunt(confirm=True)``, a scene, a
guard's loop, a stopped copy of a script) takes the changes from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from nanlab.detect.origin.report import Report
from nanlab.detect.replay import samples
from nanlab.detect.replay.patch import patches
from nanlab.detect.replay.step import Stop, search, unwatched
from nanlab.detect.state.training import Optimizers, TrainingState
from nanlab.detect.state.values import is_finite, is_numeric

Context = AbstractContextManager[Any]


@dataclass
class Intervention:
    """What one change did. `before` and `after` are the hunts' reports without and with it."""

    change: str
    before: Report
    after: Report

    @property
    def cured(self) -> bool:
        """Whether the step was non-finite without the change and is finite with it."""
        return self.before.verdict == "non-finite" and self.after.verdict == "finite"

    def __str__(self) -> str:
        if not self.before.verdict == self.after.verdict == "non-finite":
            return f"{self.change}: {self.before.verdict} before, {self.after.verdict} after"
        was, now = _place(self.before), _place(self.after)
        return f"{self.change}: still non-finite, " + ("at the same place" if was == now else f"now {now}")


def _place(report: Report) -> str:
    return f"{report.form} at line {report.line}" if report.line else f"in the {report.where}"


@dataclass
class Experiment:
    """A step that can be run any number of times from the same state.

    ``step_fn(batch)`` is as for `Scene.replay`. With `in_place` it is a program's own step: it reads its own batch,
    whose samples are exchanged where they are, and an optimizer that was not given may not step. `begin` sets
    everything to before the step for the length of a block, and yields names of what it could not set, kept in
    `missing`. `replays` counts the runs.
    """

    step_fn: Callable[[object], object]
    model: nn.Module | None
    optimizer: Optimizers
    batch: object
    begin: Callable[[], Context]
    step: int = 0
    in_place: bool = False
    replays: int = 0
    missing: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.sources = TrainingState(self.model, self.optimizer, self.batch)
        self._known = list(self.sources.optimizers) if self.in_place else None

    # one run

    def run(self, *changes: Context, batch: object = None) -> Report:
        """One run under the hunt, inside `changes` and with another batch where one is given. What `step_fn` raises
        passes through."""
        with self._changed(changes, batch) as given:
            return search(lambda: self.step_fn(given), self.model, self.optimizer, given, self.step, self._known)

    def finite(self, *changes: Context, batch: object = None) -> bool | None:
        """The same without looking at the operations: whether the step is finite; None when it raises."""
        try:
            with self._changed(changes, batch) as given:
                unwatched(lambda: self.step_fn(given), self.sources, self._known)
            return True
        except Stop:
            return False
        except Exception:
            return None

    @contextmanager
    def _changed(self, changes: Iterable[Context], batch: object) -> Iterator[object]:
        self.replays += 1
        with ExitStack() as stack:
            self.missing = stack.enter_context(self.begin())
            if batch is not None and self.in_place:
                stack.enter_context(samples.exchanged(self.batch, batch))
            for change in changes:
                stack.enter_context(change)
            yield self.batch if batch is None or self.in_place else batch

    # what can be changed

    @cached_property
    def before(self) -> Report:
        """The report on the step as it was; run when first asked for."""
        return self.run()

    def without(self, index: int) -> Intervention:
        """The batch without sample `index` (of the first dimension). IndexError when there is none."""
        return self.other(samples.without(self.batch, [self._checked(index)]), f"without sample {index}")

    def only(self, index: int) -> Intervention:
        """The batch of sample `index` alone."""
        return self.other(samples.only(self.batch, [self._checked(index)]), f"only sample {index}")

    def other(self, batch: object, change: str = "another batch") -> Intervention:
        """Another batch in place of the step's own."""
        return Intervention(change, self.before, self.run(batch=batch))

    def float64(self) -> Intervention:
        """The step's precision twin: weights, buffers, optimizer state, batch and what the step makes in double
        precision. What it cures was a matter of range or precision; a 0/0 stays."""
        return Intervention("in float64", self.before, self.run(double(self.sources)))

    def patched(self) -> Intervention:
        """The operands before the origin, mended where they are in trouble."""
        after, target = self.before, self.before.target
        if target is None:
            return Intervention("with the operand patched (there is no operation to patch)", self.before, after)
        for mode in patches(target):
            after = self.run(mode)
            if mode.count and after.verdict == "finite":
                break
        return Intervention("with the operand patched", self.before, after)

    def _checked(self, index: int) -> int:
        count = samples.size(self.batch)
        if not 0 <= index < count:
            raise IndexError(f"the batch has samples 0 to {count - 1}, not {index}")
        return index


@contextmanager
def double(sources: TrainingState) -> Iterator[None]:
    """float64 in place of every narrower float: in weights, buffers, optimizer state, the batch and what the step
    creates. The tensors keep their identity, and have their old values again afterwards, without gradients."""
    default = torch.get_default_dtype()
    held = [(t, t.data) for kind, _, t in sources.everything() if kind != "grad" and t.is_floating_point()]
    try:
        for t, data in held:
            t.grad = None
            t.data = data.double()
        torch.set_default_dtype(torch.float64)
        yield
    finally:
        torch.set_default_dtype(default)
        for t, data in held:
            t.grad = None
            t.data = data


@contextmanager
def zeroed(sources: TrainingState) -> Iterator[None]:
    """Zeros in place of what is not finite in weights, buffers, optimizer state and batch, for the length of a
    block."""
    tensors = [t for kind, _, t in sources.everything() if kind != "grad"]
    held = [(t, t.data) for t in tensors]
    zero_bad(tensors)
    try:
        yield
    finally:
        for t, data in held:
            t.data = data


def zero_bad(tensors: Iterable[Tensor]) -> int:
    """Sets what is not finite to zero; returns in how many of `tensors`."""
    bad = [t for t in tensors if is_numeric(t) and not is_finite(t)]
    for t in bad:
        t.data = torch.nan_to_num(t.data, nan=0.0, posinf=0.0, neginf=0.0)
    return len(bad)


class MendWeights(nullcontext[None]):
    """Zeros in place of what is not finite in the modules it is shown, for weights that were bad before any operation.
    `count` says in how many."""

    count = 0

    def mend(self, module: nn.Module) -> None:
        self.count += zero_bad(module.parameters())
