"""Axes: which values are in view, where each one lies, and which are named.

A log axis is kept in exponents of ten, so that limits such as fp64's 1.798e+308 need no number above them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Axis:
    """`low` and `high` are values, or exponents of ten where `log` is true."""

    low: float
    high: float
    log: bool = False
    plain: bool = False  # ticks of a log axis in words: "1 million"

    def part(self, value: float) -> float | None:
        """How far along the axis `value` lies, 0 to 1; None for what this axis can't show (0 on a log axis, nan)."""
        if not math.isfinite(value) or (self.log and value <= 0):
            return None
        place = math.log10(value) if self.log else value
        return min(1.0, max(0.0, (place - self.low) / (self.high - self.low)))

    def place(self, value: float) -> float:
        """As `part`; ValueError for what this axis can't show."""
        if (part := self.part(value)) is None:
            raise ValueError(f"{value:g} has no place on this axis")
        return part

    def shows(self, value: float) -> bool:
        """Whether `value` lies between the two ends."""
        if not math.isfinite(value) or (self.log and value <= 0):
            return False
        return self.low <= (math.log10(value) if self.log else value) <= self.high

    def ticks(self, at_most: int = 7) -> list[tuple[float, str]]:
        """(part, label) of each tick, at most `at_most` of them: round values, or whole decades. Loads matplotlib."""
        from matplotlib.ticker import MaxNLocator

        steps = (1, 3, 6, 10) if self.plain else (1, 2, 5, 10)  # thousands, millions, billions
        locator = MaxNLocator(at_most, steps=steps, integer=self.log, min_n_ticks=1)
        places = [place for place in locator.tick_values(self.low, self.high) if self.low <= place <= self.high]
        return [((place - self.low) / (self.high - self.low), self._label(place)) for place in places]

    def _label(self, place: float) -> str:
        if not self.log:
            return f"{0.0 if abs(place) < 1e-12 * (self.high - self.low) else place:.6g}"
        if self.plain and place >= -9:
            return in_words(round(place))
        if self.low >= -3 and self.high <= 4:
            return f"{10.0**place:g}"
        return "10" + f"{place:.0f}".translate(_SUPERSCRIPT)


def in_words(exponent: int) -> str:
    """Ten to the power `exponent`, -9 or more, as a person writes it: ``0.001``, ``1,000``, ``10 million``, ``1 and 12
    zeros``."""
    if exponent < 6:
        return f"{10.0**exponent:,.{max(0, -exponent)}f}"
    if exponent < 12:
        name = "million" if exponent < 9 else "billion"
        return f"{10 ** (exponent % 3)} {name}"
    return f"1 and {exponent} zeros"


def linear(values: Iterable[float], pad: float = 0.06) -> Axis:
    """An axis that shows every finite one of `values`, with `pad` of its length free at both ends."""
    shown = [v for v in values if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(shown), max(shown)
    room = (high - low) * pad or max(abs(high) * 0.1, 0.5)
    return Axis(low - room, high + room)


def logarithmic(values: Iterable[float], plain: bool = False) -> Axis:
    """An axis of whole decades that shows every finite positive one of `values`; `plain` as in `Axis`."""
    shown = [math.log10(v) for v in values if math.isfinite(v) and v > 0] or [0.0]
    low, high = math.floor(min(shown)), math.ceil(max(shown))
    return Axis(float(low), float(max(high, low + 1)), True, plain)
