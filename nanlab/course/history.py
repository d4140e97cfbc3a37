"""What every failure gives back: a run's history, and the named fixes that cure it or only seem to.

Taught from lesson 02 on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from nanlab.plots import Chart, Mark, Series, format_limit

_LISTS = {  # quantity -> the list of a `History` that holds it
    "loss": "loss",
    "gradient": "gradient_norm",
    "activation": "largest_activation",
    "weight": "largest_weight",
}


@dataclass(frozen=True)
class Fix:
    """A change to a failing run. `knobs` are the arguments of the failure's ``run`` that it changes, one thing each."""

    name: str
    title: str
    knobs: dict[str, Any]
    cures: bool
    why: str

    @property
    def verdict(self) -> str:
        """Whether it cures the run, and why, in sentences."""
        return f"This fix {'cures it' if self.cures else 'does not cure it'}. {self.why}"


@dataclass
class History:
    """What a training run recorded, one number a step, as Python floats; a record stops at the first non-finite step.

    `first_bad_step` is the 0-based step at which the first non-finite value appeared, None for a finite run, and
    `first_bad_where` the name of the quantity it stood in ("activation", "loss", "gradient", "weight").
    """

    loss: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    largest_activation: list[float] = field(default_factory=list)
    largest_weight: list[float] = field(default_factory=list)
    first_bad_step: int | None = None
    first_bad_where: str | None = None

    @property
    def finite(self) -> bool:
        return self.first_bad_step is None

    def note(self, step: int, values: dict[str, float], taken: bool = True) -> bool:
        """Append one step's loss, gradient, activation and weight; True while all of them are finite.

        `values` stand in the order in which the step makes them: the first that is not finite is named, for the first
        such step. A step that is not `taken` spoils nothing, and is not named.
        """
        for quantity, value in values.items():
            getattr(self, _LISTS[quantity]).append(value)
        bad = next((quantity for quantity, value in values.items() if not math.isfinite(value)), None)
        if bad is not None and taken and self.finite:
            self.first_bad_step, self.first_bad_where = step, bad
        return bad is None

    def table(self) -> str:
        """The run as text, four significant digits, one step a line."""
        head = f"{'step':>4}  {'loss':>10}  {'gradient norm':>13}  {'largest activation':>18}  {'largest weight':>14}"
        rows = zip(self.loss, self.gradient_norm, self.largest_activation, self.largest_weight, strict=True)
        lines = [
            f"{step:>4}  {digits(loss):>10}  {digits(norm):>13}  {digits(activation):>18}  {digits(weight):>14}"
            for step, (loss, norm, activation, weight) in enumerate(rows)
        ]
        return "\n".join([head, *lines])

    def chart(
        self,
        title: str = "Loss, step by step",
        curves: Sequence[str] = ("loss",),
        dtype: torch.dtype | str | None = torch.float32,
        digits: int = 3,
    ) -> Chart:
        """The run on a log axis with its first bad step marked: `curves` are names of this record's lists, `dtype`
        draws that format's limit (None: no line)."""
        series = tuple(Series(name.replace("_", " "), getattr(self, name)) for name in curves)
        label = ", ".join(name.replace("_", " ") for name in curves) if len(curves) < 3 else "value"
        limits = () if dtype is None else (format_limit(dtype),)
        return Chart(title, "step", label, series, limits=limits, marks=self.marks(), y_log=True, digits=digits)

    def marks(self) -> tuple[Mark, ...]:
        """The first bad step as a mark, such as "loss inf at step 3"; nothing for a finite run."""
        step, where = self.first_bad_step, self.first_bad_where
        if step is None or where is None:
            return ()
        return (Mark(step, f"{where} {getattr(self, _LISTS[where])[step]:g} at step {step}"),)

    def plain(self, every: int = 1) -> str:
        """The loss of every `every`-th step in everyday notation, three significant digits: ``154,000,000``.

        A run that oscillates or explodes gives no fourth digit that is the same on every processor.
        """
        return "\n".join(
            f"step {step:>2}   loss {plain_number(loss, 3)}" for step, loss in enumerate(self.loss) if step % every == 0
        )


def digits(value: float, significant: int = 4) -> str:
    """`value` as text with at most `significant` digits; what training produced differs beyond four between
    processors. ``inf``, ``-inf`` and ``nan`` are words."""
    return f"{value:.{significant}g}"


def plain_number(value: float, significant: int = 4) -> str:
    """`value` as `digits` gives it, written out without an exponent: ``196,800`` and not ``1.968e+05``."""
    if not math.isfinite(value):
        return digits(value)
    rounded = float(digits(value, significant))
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 else f"{rounded:.{significant}g}"


def first_nonfinite(values: Sequence[float]) -> int | None:
    """The index of the first inf or nan in `values`, or None."""
    return next((i for i, value in enumerate(values) if not math.isfinite(value)), None)
