"""Looks at weights and optimizer state before the first step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab import suspects
from nanlab.detect.guarding.failure import describe
from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.report import Report
from nanlab.detect.state.training import TrainingState
from nanlab.detect.state.values import count
from nanlab.detect.trace.tracer import Tracer

UNWRITTEN = "uninitialised memory"  # a form that says more than that the tensor was bad
MADE_BY = {"weights": "bad_init_or_uninitialised", "optimizer_state": "poisoned_state"}  # the suspects


def first_look(model: nn.Module | None, optimizers: Sequence[Optimizer]) -> BadAtStart | None:
    """What is not finite in weights and optimizer state now, or None. Buffers are not looked at: a buffer may hold NaN
    until it is first written; nor are frozen weights, which may be a mask. Cost: one exact pass over both."""
    run = TrainingState(model, optimizers)
    bad = {name: p for name, p in run.weights() if p.requires_grad and count(p) is not None}
    if bad:
        return BadAtStart("weights", bad)
    state = next(((name, t) for name, t in run.optimizer_state() if count(t) is not None), None)
    return BadAtStart("optimizer_state", dict([state])) if state else None


@dataclass
class BadAtStart:
    """Tensors, by name, that were not finite before the first step."""

    where: str
    bad: dict[str, Tensor]

    def still(self) -> BadAtStart | None:
        """What of it is not finite now; a first forward pass may set weights that were NaN until then."""
        bad = {name: t for name, t in self.bad.items() if count(t) is not None}
        return BadAtStart(self.where, bad) if bad else None

    def report(self, tracer: Tracer | None = None, step: int = 0) -> Report:
        """The report; with the line that first read the tensor where `tracer` waited for it."""
        name, t = next(iter(self.bad.items()))
        report = explain(tracer, self.where, [t], step=step) if tracer else Report("non-finite", step=step)
        report.where = report.sink = self.where
        counts, report.module = describe(report, name, t)
        what = "parameter" if self.where == "weights" else "optimizer state"
        if report.form != UNWRITTEN:
            report.op, report.form = f"{'nan' if counts.nan else 'inf'} in {what}", "nan_in" if counts.nan else "inf_in"
        report.suspect = MADE_BY[self.where]
        report.lesson = suspects.get(report.suspect).lesson
        report.notes = [f"{name} was not finite before the first step: {counts}, first at {list(counts.element)}."]
        return report
