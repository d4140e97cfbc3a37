"""What a chart is made of: curves, bars, limits, marks and bands on one pair of axes. Nothing is placed here."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """A curve. `x` counts 0, 1, 2, … where it is left out. A value that is not finite breaks the line and is marked:
    nan and inf in strips of their own above the axes, -inf at the lower edge. With `line=False` only the points are
    drawn, with `arrows` the line says which way it goes."""

    name: str
    y: Sequence[float]
    x: Sequence[float] | None = None
    line: bool = True
    arrows: bool = False

    @property
    def points(self) -> list[tuple[float, float]]:
        xs = range(len(self.y)) if self.x is None else self.x
        return [(float(x), float(y)) for x, y in zip(xs, self.y, strict=True)]


@dataclass(frozen=True)
class Bars:
    """Bars of `heights`: a histogram between n + 1 `edges`, or one bar for each of the chart's `categories`."""

    name: str
    heights: Sequence[float]
    edges: Sequence[float] | None = None


@dataclass(frozen=True)
class Limit:
    """A horizontal line that values must stay below (or above), such as "fp16 max 65,504"."""

    value: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A vertical line, such as "inf at step 3"."""

    x: float
    label: str


@dataclass(frozen=True)
class Band:
    """A shaded stretch of the horizontal axis; `tone` is "bad", "good" or "quiet"."""

    low: float
    high: float
    label: str
    tone: str = "quiet"


@dataclass(frozen=True)
class Note:
    """A few words beside the point (`x`, `y`), such as "start"."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Description:
    """Everything that one chart shows.

    `alt` is what a screen reader says (made from the data where it is left out). `digits` is how many significant
    digits of the data the text may show: 3, fewer for what differs between processors, 0 for none. `x_range` and
    `y_range` fix what is in view; without them all data is, and a limit is where the data comes near it. `ghosts` are
    drawn pale behind the series, to compare with, and count as data in view.
    `plain` writes the numbers beside a log axis in words: "1 million".
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series] = ()
    bars: Sequence[Bars] = ()
    limits: Sequence[Limit] = ()
    marks: Sequence[Mark] = ()
    bands: Sequence[Band] = ()
    notes: Sequence[Note] = ()
    categories: Sequence[str] = ()
    x_log: bool = False
    y_log: bool = False
    plain: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    ghosts: Sequence[Series] = ()
    alt: str = ""
    digits: int = 3
    width: int = 640
    height: int = 340
