"""A chart said in words: for screen readers, for pages without pictures, and for nbval to compare."""

import math
from itertools import pairwise

from nanlab.plots.description import Bars, Description, Series


def describe(chart: Description) -> str:
    """The title and one line for each curve, bar group, limit and mark, with at most `chart.digits` digits."""
    lines = [f"[chart] {chart.title}"]
    lines += [f"  {_curve(series, chart.digits, chart.x_label)}" for series in chart.series]
    lines += [f"  {_bars(bars, chart)}" for bars in chart.bars]
    lines += [f"  line: {limit.label}" for limit in chart.limits]
    lines += [f"  mark: {mark.label}" for mark in chart.marks]
    lines += [f"  note: {note.text}" for note in chart.notes]
    lines += [f"  shaded: {band.label}" for band in chart.bands]
    return "\n".join(lines)


def alternative(chart: Description) -> str:
    """The chart in one line: its `alt`, or what `describe` says."""
    return chart.alt or "; ".join(line.strip() for line in describe(chart).removeprefix("[chart] ").split("\n"))


def number(value: float, digits: int) -> str:
    """`value` with at most `digits` significant digits; a finite one is only called so when `digits` is 0."""
    if math.isfinite(value) and digits == 0:
        return "finite"
    return f"{float(f'{value:.{max(digits, 1)}g}'):g}"


def _curve(series: Series, digits: int, x_label: str) -> str:
    points = series.points
    if not points:
        return f"{series.name}: no values"
    (_, first), (_, last) = points[0], points[-1]
    count = "1 value" if len(points) == 1 else f"{len(points)} values"
    said = f"{series.name}: {count}, from {number(first, digits)} to {number(last, digits)}"
    bad = next((x for x, y in points if not math.isfinite(y)), None)
    return said if bad is None else f"{said}, not finite from {x_label or 'x'} {bad:g} on"


def _bars(bars: Bars, chart: Description) -> str:
    if chart.categories:
        pairs = zip(chart.categories, bars.heights, strict=True)
        return f"{bars.name}: " + ", ".join(f"{name} {number(height, chart.digits)}" for name, height in pairs)
    middles = [(low + high) / 2 for low, high in pairwise(bars.edges or ())]
    _, middle = max(zip(bars.heights, middles, strict=True), key=lambda bar: bar[0])
    return f"{bars.name}: {len(bars.heights)} bars, the tallest around {number(middle, min(chart.digits, 2))}"
