"""A step that went bad: where it showed, in which tensors, and what the optimizers were set to then."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor
from torch.optim import Optimizer

from nanlab.detect.origin.report import Report
from nanlab.detect.state.checkpoint import Settings
from nanlab.detect.state.values import Counts, count


@dataclass
class Failure:
    """What went bad: `where` is ``"loss"``, ``"gradient"``, ``"weights"`` or ``"optimizer_state"``; `step` counts
    optimizer steps from 0; `spoilt` says that the step was made and the weights are no longer those before it."""

    where: str
    tensors: list[Tensor]
    step: int
    optimizer: Optimizer | None = None
    spoilt: bool = False
    notes: list[str] = field(default_factory=list)
    made: dict[int, int] = field(default_factory=dict)  # id of an optimizer -> its steps earlier in the same pass
    looks: int = 0  # losses looked at in the pass before the one that failed
    settings: Settings = field(default_factory=Settings)  # the optimizers' at the failing step


def describe(report: Report, name: str, t: Tensor) -> tuple[Counts, str]:
    """Says in `report` what of the tensor called `name` is not finite; returns that, and the path of its module."""
    counts = count(t)
    assert counts is not None, f"{name} is finite"
    report.element, report.shape, report.counts = list(counts.element), list(t.shape), str(counts)
    return counts, name.split(" of ")[-1].rpartition(".")[0]
