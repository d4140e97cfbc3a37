"""What a guard remembers from one loop over the data to the next: step counts, the trajectory, what it let pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from torch import nn
from torch.optim import Optimizer

from nanlab.detect.origin.report import Report
from nanlab.detect.state.trajectory import Trajectory


@dataclass
class History:
    """Belongs to a set of optimizers (or to a model without any) for as long as they live, so that a guard made anew
    for every epoch goes on counting."""

    trajectory: Trajectory = field(default_factory=Trajectory)
    steps: dict[int, int] = field(default_factory=dict)  # id of an optimizer -> steps made
    batches: int = 0
    looked: bool = False  # whether weights and optimizer state were looked at before the first step
    scale: float = math.nan  # the loss scale, as last updated

    def tell(self, report: Report) -> None:
        """Adds to `report` the last steps, and whether the run climbed into the failure."""
        verdict, evidence = self.trajectory.judge()
        report.trajectory = self.trajectory.to_json()["rows"]
        report.notes.append(f"The run before it{'' if verdict == 'short' else f' was {verdict}'}: {evidence}.")


_histories: WeakKeyDictionary = WeakKeyDictionary()


def history_of(model: nn.Module | None, optimizers: Sequence[Optimizer]) -> History:
    """The history of these optimizers; a new one for a loop that has neither optimizer nor model."""
    owner = optimizers[0] if optimizers else model
    return _histories.setdefault(owner, History()) if owner is not None else History()


@dataclass(frozen=True)
class Skipped:
    """A step that `guard` let pass: its number and where it was not finite."""

    step: int
    where: str

    def __str__(self) -> str:
        return f"step {self.step} ({self.where})"


def listed(skipped: Sequence[Skipped]) -> str:
    """The first few of them as text."""
    more = f" and {len(skipped) - 5} more" if len(skipped) > 5 else ""
    return ", ".join(map(str, skipped[:5])) + more
