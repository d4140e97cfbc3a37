"""Grids: rows of labelled cells, such as the bits of a number or a matrix in which one row became NaN.

Used where single values matter more than a curve: lessons 01, 03, 04 and 05.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nanlab.plots import look
from nanlab.plots.shapes import Picture, Rect, Text
from nanlab.plots.show import Figure


@dataclass(frozen=True)
class Cell:
    """One box with `text`; `tone` is a key of ``look.FILLS``: "plain", "sign", "exponent", "mantissa", "good", "bad",
    "quiet", or "head" (no box). `span` is how many columns it takes."""

    text: str
    tone: str = "plain"
    span: int = 1


@dataclass(frozen=True)
class Grid(Figure):
    """`rows` are sequences of `Cell`; `labels` stand in front of the rows. Colour never carries a meaning alone:
    `note` says under the grid what the colours are."""

    title: str
    rows: Sequence[Sequence[Cell]]
    labels: Sequence[str] = ()
    note: str = ""
    alt: str = ""
    cell_width: int = 0  # pixels; 0 fills the width
    width: int = 640

    def picture(self) -> Picture:
        row, top, left = 34, 42, 16
        height = top + len(self.rows) * row + (34 if self.note else 14)
        picture = Picture(self.width, height, self.alt or "; ".join(self.words().split("\n")))
        picture.add(Text(16, 25, self.title, look.TITLE_SIZE, bold=True))
        if self.labels:
            left += 12 + round(max(look.text_width(label, look.LABEL_SIZE) for label in self.labels))
        columns = max(sum(cell.span for cell in cells) for cells in self.rows)
        unit = self.cell_width or (self.width - 16 - left) // columns
        for n, cells in enumerate(self.rows):
            y = top + n * row
            if self.labels:
                picture.add(Text(left - 12, y + 20, self.labels[n], look.LABEL_SIZE, "end", look.QUIET))
            _row(picture, cells, left, y, unit)
        if self.note:
            picture.add(Text(left, height - 14, self.note, look.TICK_SIZE, colour=look.QUIET))
        return picture

    def words(self) -> str:
        labels = self.labels or [""] * len(self.rows)
        body = [f"  {label} {_say(cells)}".replace("   ", "  ") for label, cells in zip(labels, self.rows, strict=True)]
        return "\n".join([f"[grid] {self.title}", *body])


def _say(cells: Sequence[Cell]) -> str:
    """Single characters run together, so that bits read as a number; anything else is set apart."""
    gap = "" if all(len(cell.text) <= 1 for cell in cells) else "  "
    return gap.join(cell.text for cell in cells)


def _row(picture: Picture, cells: Sequence[Cell], x: int, y: int, unit: int) -> None:
    for cell in cells:
        ground, ink = look.FILLS[cell.tone]
        width = unit * cell.span
        if cell.tone != "head":
            picture.add(Rect(x, y, width, 28, ground, look.EDGE))
        size = look.LABEL_SIZE if look.text_width(cell.text, look.LABEL_SIZE) < width else 10
        picture.add(Text(x + width // 2, y + 19, cell.text, size, "middle", ink, bold=cell.tone == "bad", mono=True))
        x += width
