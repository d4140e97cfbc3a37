"""Curves and bars in pixels. What an axis can't show is marked at its edge: nothing is left out without a word."""

import math
from itertools import groupby, pairwise

from nanlab.plots import look
from nanlab.plots.description import Bars, Description, Series
from nanlab.plots.frame import Frame
from nanlab.plots.shapes import Path, Picture, Point, Rect

_ASIDE = 9  # pixels between the marks of two runs that fail at the same place
_HEAD = 10  # pixels, the head of an arrow
_MANY = 40  # points; more than these are drawn as a bare line


def draw_series(picture: Picture, frame: Frame, chart: Description) -> None:
    """Add every curve of `chart` to `picture`. A line ends where a value can't be drawn and begins anew after it."""
    for ghost in chart.ghosts:
        _ghost(picture, frame, ghost)
    failing = [series for series in chart.series if any(not math.isfinite(y) for _, y in series.points)]
    for place, series in enumerate(chart.series):
        aside = (failing.index(series) - (len(failing) - 1) / 2) * _ASIDE if series in failing else 0.0
        _curve(picture, frame, series, place, aside)


def _ghost(picture: Picture, frame: Frame, ghost: Series) -> None:
    """A curve of before: one pale line through what can be drawn of it, without points."""
    shown = [(x, y) for x, y in ghost.points if frame.y_axis.shows(y) and frame.x_axis.part(x) is not None]
    if len(shown) > 1:
        picture.add(Path(tuple((frame.x(x), frame.y(y)) for x, y in shown), look.EDGE, 5.0))


def _curve(picture: Picture, frame: Frame, series: Series, place: int, aside: float) -> None:
    colour, shape = look.SERIES[place % 6], look.POINTS[place % 6]
    bare = series.line and len(series.points) > _MANY
    spots: list[Point] = []
    for shown, points in groupby(series.points, lambda point: frame.y_axis.shows(point[1])):
        seen = [(x, y) for x, y in points if frame.x_axis.part(x) is not None]
        if not shown:
            spots += [_outside(frame, x, y, colour, aside) for x, y in seen]
            continue
        run = [(frame.x(x), frame.y(y)) for x, y in seen]
        if series.line and len(run) > 1:
            picture.add(Path(tuple(run), colour, 2.0, look.DASHES[place % 6]))
            picture.add(*_arrows(run, colour) if series.arrows else ())
        spots += [Point(*at, shape, colour) for at in run] if not bare or len(run) == 1 else []
    picture.add(*spots)


def _arrows(run: list[tuple[float, float]], colour: str) -> list[Path]:
    """An open head in the middle of every piece of a line that is long enough to hold one."""
    heads = []
    for (x0, y0), (x1, y1) in pairwise(run):
        length = math.hypot(x1 - x0, y1 - y0)
        if length < 3 * _HEAD:
            continue
        dx, dy = (x1 - x0) / length * _HEAD, (y1 - y0) / length * _HEAD
        x, y = (x0 + x1 + dx) / 2, (y0 + y1 + dy) / 2
        corners = ((x - dx - dy / 2, y - dy + dx / 2), (x, y), (x - dx + dy / 2, y - dy - dx / 2))
        heads.append(Path(tuple((round(px, 1), round(py, 1)) for px, py in corners), colour, 2.5))
    return heads


def _outside(frame: Frame, x: float, y: float, colour: str, aside: float) -> Point:
    """The mark for a value that the vertical axis can't show; runs that fail at one place stand side by side."""
    at = frame.x(x)
    if math.isnan(y):
        return Point(at + aside, frame.strips["nan"], "cross", colour, 5)
    if y == math.inf:
        return Point(at + aside, frame.strips["inf"], "triangle", colour, 5)
    low = y == -math.inf or frame.y_axis.part(y) in (None, 0.0)
    return Point(at, frame.bottom if low else frame.top, "down" if low else "triangle", colour, 5)


def draw_bars(picture: Picture, frame: Frame, chart: Description) -> None:
    """Add every bar of `chart` to `picture`; groups stand side by side over categories, and overlap in histograms."""
    for place, bars in enumerate(chart.bars):
        colour = look.SERIES[(len(chart.series) + place) % 6]
        for left, right, height in _boxes(frame, bars, place, len(chart.bars)):
            if not math.isfinite(height):
                shape, name = ("cross", "nan") if math.isnan(height) else ("triangle", "inf")
                picture.add(Point((left + right) // 2, frame.strips.get(name, frame.top), shape, colour, 5))
                continue
            top = frame.bottom if frame.y_axis.part(height) is None else round(frame.y(height))
            opacity = 0.45 if len(chart.bars) > 1 else 0.7
            hatch = (len(chart.series) + place) % 2 == 1
            picture.add(Rect(left, top, max(1, right - left), frame.bottom - top, colour, colour, opacity, hatch))


def _boxes(frame: Frame, bars: Bars, place: int, groups: int) -> list[tuple[int, int, float]]:
    """Left and right edge of each bar, in whole pixels, and its height."""
    if bars.edges is not None:
        edges = [round(frame.x(edge)) for edge in bars.edges]
        return list(zip(edges[:-1], edges[1:], bars.heights, strict=True))
    width = 0.7 / groups
    lefts = [n - 0.35 + place * width for n in range(len(bars.heights))]
    return [(round(frame.x(at)), round(frame.x(at + width)), h) for at, h in zip(lefts, bars.heights, strict=True)]
