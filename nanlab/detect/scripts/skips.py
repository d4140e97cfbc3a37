"""Steps that a script dropped by itself because they were not finite: no failures, but worth a sentence at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

from nanlab.detect.origin.report import Report

LISTED = 5


@dataclass
class Skips:
    """The dropped steps, and what is known of the first."""

    steps: list[int] = field(default_factory=list)
    first: Report | None = None

    def add(self, step: int, report: Report | None) -> None:
        self.first = self.first if self.steps else report
        self.steps.append(step)

    def __str__(self) -> str:
        """A sentence; empty where nothing was dropped."""
        if not self.steps:
            return ""
        times = "One step was" if len(self.steps) == 1 else f"{len(self.steps)} steps were"
        at = ", ".join(map(str, self.steps[:LISTED])) + (", …" if len(self.steps) > LISTED else "")
        came = f" The first: {self.first.headline()}." if self.first is not None else ""
        return f"{times} not finite and dropped by the script itself (at {at}).{came} --stop-at-skips hunts the first."
