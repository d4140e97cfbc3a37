"""A shop's week as a spreadsheet, in which one bad cell spreads. Used by lesson 01 and its lab."""

import math

import torch

from nanlab.lessons.two_markers import failure
from nanlab.lessons.two_markers.failure import Sheet
from nanlab.plots import Cell, Grid

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri")
SOLD, VISITORS = (5.0, 10.0, 10.0, 12.0, 20.0), (20.0, 25.0, 40.0, 40.0, 50.0)
THURSDAY = 3


def week(sold: float, visitors: float, treat: str = "keep") -> tuple[Sheet, list[float], list[float]]:
    """The standard week with Thursday's entries replaced: what the sheet computes, and the two columns typed in."""
    each_sold, each_visitors = list(SOLD), list(VISITORS)
    each_sold[THURSDAY], each_visitors[THURSDAY] = sold, visitors
    return failure.sheet(torch.tensor(each_sold), torch.tensor(each_visitors), treat), each_sold, each_visitors


def sheet(sold: float = 12.0, visitors: float = 40.0, treat: str = "keep", title: str = "A shop's week") -> Grid:
    """The standard week with Thursday's `sold` and `visitors`, as a grid; `treat` as in ``two_markers.sheet``."""
    result, sold_column, visitors_column = week(sold, visitors, treat)
    rows = [[Cell(text, "head") for text in ("sold", "visitors", "share", "from the average")]]
    for day, values in enumerate(zip(result.share.tolist(), result.difference.tolist(), strict=True)):
        typed = [Cell(f"{sold_column[day]:g}"), Cell(f"{visitors_column[day]:g}")]
        share, difference = values
        if treat == "leave out" and not math.isfinite(share):
            rows.append([*typed, Cell("left out", "quiet"), Cell("left out", "quiet")])
        else:
            rows.append([*typed, _cell(share), _cell(difference, signed=True)])
    rows.append([Cell("", "head"), Cell("average", "head"), _cell(result.average.item()), Cell("", "head")])
    return Grid(title, rows, ["", *DAYS, ""], note=_note(rows), cell_width=132)


def spoiled(result: Sheet) -> int:
    """How many of the computed cells are not finite."""
    cells = torch.cat([result.share, result.difference, result.average.reshape(1)])
    return int((~cells.isfinite()).sum())


def _cell(value: float, signed: bool = False) -> Cell:
    """A share as per cent; inf and nan as they are, marked."""
    if not math.isfinite(value):
        return Cell(f"{value}", "bad")
    return Cell(f"{100 * value:{'+' if signed else ''}.4g} %")


def _note(rows: list[list[Cell]]) -> str:
    bad = sum(cell.tone == "bad" for row in rows for cell in row)
    return f"{bad} of 11 computed cells spoiled (bold)" if bad else "Every computed cell is a number."
