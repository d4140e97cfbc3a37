"""Several small charts side by side, each with axes of its own: what one pair of axes would tangle.

Used by the checkpoint after lesson 06.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nanlab.plots import look
from nanlab.plots.chart import Chart
from nanlab.plots.shapes import Path, Picture, Rect, Shape, Text
from nanlab.plots.show import Figure


@dataclass(frozen=True)
class Panels(Figure):
    """`charts` in rows of `columns`; each keeps its own width and height, and all have the same."""

    title: str
    charts: Sequence[Chart]
    columns: int = 2

    def picture(self) -> Picture:
        top, width, height = 34, self.charts[0].width, self.charts[0].height
        rows = -(-len(self.charts) // self.columns)
        whole = Picture(width * self.columns, top + height * rows, "; ".join(self.words().split("\n")))
        whole.add(Text(16, 25, self.title, look.TITLE_SIZE, bold=True))
        for place, chart in enumerate(self.charts):
            x, y = place % self.columns * width, top + place // self.columns * height
            whole.add(*(_moved(shape, x, y) for shape in chart.picture().shapes))
        return whole

    def words(self) -> str:
        return "\n".join([f"[panels] {self.title}", *(chart.words() for chart in self.charts)])


def _moved(shape: Shape, x: int, y: int) -> Shape:
    if isinstance(shape, Path):
        return replace(shape, points=tuple((px + x, py + y) for px, py in shape.points))
    if isinstance(shape, Rect):
        return replace(shape, x=shape.x + x, y=shape.y + y)
    return replace(shape, x=shape.x + x, y=shape.y + y)
