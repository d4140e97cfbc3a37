"""Looks at weights and optimizer state once before the first step, and finds the line that first reads what is bad there."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode

from nanlab import suspects
from nanlab.detect.forms import FORMS
from nanlab.detect.nesting import tensors
from nanlab.detect.report import Report
from nanlab.detect.scene import named_weights
from nanlab.detect.screen import state_tensors
from nanlab.detect.values import count

if TYPE_CHECKING:
    from nanlab.detect.rerun import Rerun
    from nanlab.detect.tracer import Tracer

MADE_BY = "bad_init_or_uninitialised"  # the suspect for weights that were bad before any step


def first_look(model: nn.Module | None, optimizers: Sequence[Optimizer]) -> BadAtStart | None:
    """What is not finite in weights and optimizer state now, or None. Buffers are not looked at: a buffer may hold NaN
    until it is first written. Cost: one exact pass over both."""
    named = named_weights(model, optimizers)
    bad = {name: p for name, p in named.items() if count(p) is not None}
    if bad:
        return BadAtStart("weights", bad)
    for one in optimizers:
        for t in state_tensors(one):
            if count(t) is not None:
                return BadAtStart("optimizer_state", {_state_name(one, t, named): t})
    return None


def _state_name(optimizer: Optimizer, t: Tensor, named: dict[str, Tensor]) -> str:
    names = {id(p): name for name, p in named.items()}
    for p, state in optimizer.state.items():
        for key, value in state.items():
            if value is t:
                return f"{key} of {names.get(id(p), 'a parameter')}"
    return "the optimizer state"


@dataclass
class BadAtStart:
    """Tensors, by name, that were not finite before the first step."""

    where: str
    bad: dict[str, Tensor]

    def report(self, read: Read | None = None, tracer: Tracer | None = None, step: int = 0) -> Report:
        """The report, with the place that first read one of them where that is known."""
        name, t = next(iter((read.name, read.tensor) for read in [read] if read) if read else iter(self.bad.items()))
        counts = count(t)
        form = "nan_in" if counts.nan else "inf_in"
        what = "parameter" if self.where == "weights" else "optimizer state"
        suspect = MADE_BY if self.where == "weights" else FORMS[form][1]
        return Report(
            "non-finite", step=step, where=self.where, sink=self.where,
            op=f"{'nan' if counts.nan else 'inf'} in {what}",
            file=read.place.file if read and read.place else None,
            line=read.place.line if read and read.place else None,
            module=tracer.paths.path(read.module) if read and tracer else name.rpartition(".")[0] or None,
            form=form, element=list(counts.element), shape=list(t.shape), counts=str(counts),
            suspect=suspect, lesson=suspects.get(suspect).lesson,
            notes=[f"{name} was not finite before the first step: {counts}, first at {list(counts.element)}."],
        )  # fmt: skip

    def read_by(self, rerun: Rerun) -> Generator[object, None, Report]:
        """Yields the first batch under the hunt, without stepping, and reports who reads the bad tensors first."""
        if self.where != "weights":
            return self.report()
        from nanlab.detect.rerun import _eager_tracer

        sentry, start = rerun.sentry, rerun.starts[0]
        with ExitStack() as stack:
            stack.callback(rerun.drop)
            tracer = stack.enter_context(_eager_tracer(rerun.model, rerun.optimizers, start.batch))
            reads = stack.enter_context(FirstRead(tracer, self.bad))
            sentry.begin()
            sentry.replaying = True
            yield start.batch
            sentry.begin()
            sentry.replaying = False
        return self.report(reads.found, tracer)


@dataclass(frozen=True)
class Read:
    """The first operation in a forward pass that read a bad tensor."""

    name: str
    tensor: Tensor
    place: object
    module: object


class FirstRead(TorchDispatchMode):
    """Notes the first operation inside a module that reads one of `bad`, by storage, whether or not its result is bad:
    a row that is not looked up does no harm yet. Enter it after the tracer, which knows line and module."""

    supports_higher_order_operators = True

    def __init__(self, tracer: Tracer, bad: dict[str, Tensor]) -> None:
        super().__init__()
        self._tracer = tracer
        self._storages = {t.untyped_storage()._cdata: (name, t) for name, t in bad.items() if t.layout is torch.strided}
        self.found: Read | None = None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.found is None and self._tracer.modules:
            for t in tensors([list(args), kwargs or {}]):
                hit = self._storages.get(t.untyped_storage()._cdata) if t.layout is torch.strided else None
                if hit is not None:
                    call = self._tracer.stack[-1] if self._tracer.stack else None
                    self.found = Read(*hit, call.place if call else None, self._tracer.modules[-1])
                    break
        return func(*args, **(kwargs or {}))
