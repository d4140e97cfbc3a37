"""The last 64 steps of a run, and whether it was flat or climbing when it failed.

The first thing a diagnosis asks is whether the run grew into the failure or met it out of nowhere; growth points at the
learning rate, the loss scale or an unbounded activation, a flat run at one batch.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

LENGTH = 64  # steps kept: enough for a trend, and a table that fits a screen
GROWTH = 10.0  # a rise by this factor is climbing however it came about
STEADY_GROWTH = 3.0  # a rise by this factor is climbing when nearly every step took part in it
STEADY = 0.8  # the share of steps that must go up for that
SHORTEST = 4  # with fewer steps than this nothing is said,
EXPLOSION = 100.0  # unless each of them rose and together by this factor
RECENT = 3  # the end of a run is its largest of this many steps, so that one quiet step hides nothing


class Point(NamedTuple):
    """One step. `loss` is the last loss that backward saw, `gradient_norm` the L2 norm over all gradients as the
    optimizer got them (after clipping), `lr` the first group's learning rate, `scale` the loss scale; NaN where the
    step had none."""

    step: int
    loss: float
    gradient_norm: float
    lr: float
    scale: float


@dataclass(slots=True)
class Trajectory:
    """A ring of the last `LENGTH` steps. Prints as a table; `verdict` is ``"flat"``, ``"climbing"`` or ``"short"``."""

    ring: deque[tuple[int, float, float, float, float]] = field(default_factory=lambda: deque(maxlen=LENGTH))

    def __len__(self) -> int:
        return len(self.ring)

    @property
    def points(self) -> list[Point]:
        return list(map(Point._make, self.ring))

    def add(self, step: int, loss: float, gradient_norm: float, lr: float, scale: float) -> None:
        self.ring.append((step, loss, gradient_norm, lr, scale))

    @property
    def verdict(self) -> str:
        return self.judge()[0]

    @property
    def evidence(self) -> str:
        """The sentence that the verdict rests on."""
        return self.judge()[1]

    def judge(self) -> tuple[str, str]:
        """The verdict and its evidence, from the finite values of gradient norm and loss."""
        longest = 0
        for name, values in (("gradient norm", self._finite("gradient_norm")), ("loss", self._finite("loss"))):
            longest = max(longest, len(values))
            if len(values) > 1 and (said := _climbing(name, values)):
                return "climbing", said
        if longest < SHORTEST:
            return "short", f"{longest} finite steps before it, too few to tell"
        return "flat", self._flat()

    def _finite(self, name: str) -> list[float]:
        return [abs(v) for p in self.points if math.isfinite(v := getattr(p, name))]

    def _flat(self) -> str:
        parts = []
        for name, field_name in (("gradient norm", "gradient_norm"), ("loss", "loss")):
            if values := self._finite(field_name):
                parts.append(f"{name} between {min(values):.4g} and {max(values):.4g}")
        return f"{' and '.join(parts)} over the last {len(self.points)} steps"

    def to_json(self) -> dict[str, Any]:
        """Plain data: the verdict, the evidence, and one row a step (NaN as None)."""
        verdict, evidence = self.judge()
        rows = [[p.step, *(_plain(v) for v in (p.loss, p.gradient_norm, p.lr, p.scale))] for p in self.points]
        columns = ["step", "loss", "gradient_norm", "lr", "scale"]
        return {"verdict": verdict, "evidence": evidence, "columns": columns, "rows": rows}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Trajectory:
        made = cls()
        for step, *values in data["rows"]:
            made.add(step, *(math.nan if v is None else float(v) for v in values))
        return made

    def table(self, last: int = 8) -> str:
        """The last steps as text, four significant digits; a column in which nothing was recorded is left out."""
        shown = list(self.points)[-last:]
        wanted = [
            n for n in ("loss", "gradient_norm", "lr", "scale") if any(not math.isnan(getattr(p, n)) for p in shown)
        ]
        head = f"{'step':>6}" + "".join(f"  {n.replace('_', ' '):>13}" for n in wanted)
        rows = (f"{p.step:>6}" + "".join(f"  {getattr(p, n):>13.4g}" for n in wanted) for p in shown)
        return "\n".join([head, *rows])

    def __str__(self) -> str:
        verdict, evidence = self.judge()
        return f"{verdict}: {evidence}" + (f"\n{self.table()}" if self.points else "")


def _climbing(name: str, values: list[float]) -> str | None:
    """The sentence that says `values` (two or more) climbed, or None."""
    if len(values) < SHORTEST:
        return _said(name, values, values[0], values[-1]) if _explodes(values) else None
    start = median(values[: max(2, len(values) // 2)])
    end = max(values[-RECENT:])
    factor = end / start if start > 0 else math.inf if end > 0 else 1.0
    rises = sum(b > a for a, b in pairwise(values)) / (len(values) - 1)
    if factor >= GROWTH or (factor >= STEADY_GROWTH and rises >= STEADY):
        return _said(name, values, start, end)
    return None


def _explodes(values: list[float]) -> bool:
    return all(b > a for a, b in pairwise(values)) and values[-1] >= EXPLOSION * values[0]


def _said(name: str, values: list[float], start: float, end: float) -> str:
    return f"{name} rose from {start:.4g} to {end:.4g} over the last {len(values)} steps"


def _plain(value: float) -> float | str | None:
    return None if math.isnan(value) else value if math.isfinite(value) else str(value)
