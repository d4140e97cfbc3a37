"""Curves and bars in pixels. What an axis can't show is marked at its edge: nothing is left out without a word."""

import math
from typing import TYPE_CHECKING

from nanlab.plots import look
from nanlab.plots.shapes import Path, Picture, Point, Rect

if TYPE_CHECKING:
    from nanlab.plots.chart import Bars, Chart, Series
    from nanlab.plots.layout import Frame

_MANY = 40  # points; more than these are drawn as a bare line


def draw_series(picture: Picture, frame: "Frame", chart: "Chart") -> None:
    """Add every curve of `chart` to `picture`."""
    for place, series in enumerate(chart.series):
        _curve(picture, frame, series, place)


def _curve(picture: Picture, frame: "Frame", series: "Series", place: int) -> None:
    colour, shape = look.SERIES[place % 6], look.POINTS[place % 6]
    many = len(series.points) > _MANY
    run: list[tuple[int, int]] = []
    spots: list[Point] = []
    previous = None
    for x, y in series.points:
        if frame.x(x) is None:
            continue
        if math.isfinite(y) and frame.y_axis.shows(y):
            run.append((frame.x(x), frame.y(y)))
            spots += [] if many and series.line else [Point(*run[-1], shape, colour)]
        else:
            spot = _outside(frame, x, y, colour)
            if run and series.line and previous is not None:
                picture.add(Path((run[-1], (spot.x, spot.y)), look.DANGER, 1.5, (2, 3)))
            _line(picture, run, colour, place, series.line)
            run = []
            spots.append(spot)
        previous = x
    _line(picture, run, colour, place, series.line)
    picture.add(*spots)


def _line(picture: Picture, run: list[tuple[int, int]], colour: str, place: int, wanted: bool) -> None:
    if wanted and len(run) > 1:
        picture.add(Path(tuple(run), colour, 2.0, look.DASHES[place % 6]))


def _outside(frame: "Frame", x: float, y: float, colour: str) -> Point:
    """The mark for a value that the vertical axis can't show."""
    if math.isnan(y):
        return Point(frame.x(x), frame.gutter, "cross", look.DANGER, 5)
    if y == math.inf:
        return Point(frame.x(x), frame.gutter, "triangle", look.DANGER, 5)
    low = y == -math.inf or frame.y_axis.part(y) in (None, 0.0)
    return Point(frame.x(x), frame.bottom if low else frame.top, "down" if low else "triangle", colour, 5)


def draw_bars(picture: Picture, frame: "Frame", chart: "Chart") -> None:
    """Add every bar of `chart` to `picture`; groups stand side by side over categories, and overlap in histograms."""
    for place, bars in enumerate(chart.bars):
        colour = look.SERIES[(len(chart.series) + place) % 6]
        for left, right, height in _boxes(frame, bars, place, len(chart.bars)):
            if not math.isfinite(height):
                shape = "cross" if math.isnan(height) else "triangle"
                picture.add(Point((left + right) // 2, frame.gutter or frame.top, shape, look.DANGER, 5))
                continue
            top = frame.bottom if frame.y(height) is None else frame.y(height)
            opacity = 0.45 if len(chart.bars) > 1 else 0.7
            hatch = (len(chart.series) + place) % 2 == 1
            picture.add(Rect(left, top, max(1, right - left), frame.bottom - top, colour, colour, opacity, hatch))


def _boxes(frame: "Frame", bars: "Bars", place: int, groups: int) -> list[tuple[int, int, float]]:
    if bars.edges is not None:
        edges = [frame.x(edge) for edge in bars.edges]
        return list(zip(edges[:-1], edges[1:], bars.heights, strict=True))
    width = 0.7 / groups
    lefts = [n - 0.35 + place * width for n in range(len(bars.heights))]
    return [(frame.x(at), frame.x(at + width), h) for at, h in zip(lefts, bars.heights, strict=True)]
