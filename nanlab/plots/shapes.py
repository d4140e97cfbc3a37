"""The few shapes from which a picture is made, in pixels from the upper left corner.

A description (`Chart`, `Grid`) becomes one `Picture`; `svg` and `png` draw the same picture, so that the live figure of
a lab and the stored one are the same to the eye.
"""

from dataclasses import dataclass, field

from nanlab.plots.look import INK


@dataclass(frozen=True)
class Rect:
    x: int
    y: int
    width: int
    height: int
    fill: str
    edge: str | None = None
    opacity: float = 1.0
    hatch: bool = False


@dataclass(frozen=True)
class Path:
    """A line through `points`; a closed one is filled with nothing."""

    points: tuple[tuple[float, float], ...]
    colour: str
    width: float = 1.0
    dash: tuple[int, ...] = ()


@dataclass(frozen=True)
class Point:
    """A small mark: "circle", "square", "diamond", "triangle" (up), "down", or "cross"."""

    x: float
    y: float
    shape: str
    colour: str
    size: int = 4


@dataclass(frozen=True)
class Text:
    """One line of text; `y` is its base line. `halo` keeps it readable where it crosses lines."""

    x: float
    y: float
    text: str
    size: int = 12
    anchor: str = "start"  # or "middle", "end"
    colour: str = INK
    bold: bool = False
    halo: bool = False
    upright: bool = False  # turned by 90 degrees, for the label of a vertical axis
    mono: bool = False


Shape = Rect | Path | Point | Text


@dataclass
class Picture:
    """`shapes` in drawing order on a white ground of `width` by `height` pixels; `alt` says in words what is seen."""

    width: int
    height: int
    alt: str
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        self.shapes.extend(shapes)
