"""The spreadsheet lab of lesson 01: type one day's numbers and see which cells they spoil, and what a repair does."""

import math
from dataclasses import dataclass

from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Choice, Number
from nanlab.lessons.two_markers.failure import Sheet
from nanlab.lessons.two_markers.pictures import THURSDAY, sheet, spoiled, week
from nanlab.plots import Grid

_TREATMENTS = {"nothing": "keep", "leave the day out": "leave out", "put 0 for its share": "replace"}


@dataclass(frozen=True)
class Week:
    """What the sheet computed, and what was typed."""

    sheet: Sheet
    sold: float
    visitors: float
    treat: str


class SheetLab(Lab):
    """A shop's week, whose Thursday can be changed."""

    controls = (
        Number("sold", "sold on Thursday", 0, 0, 1000, (0, 1, 5, 12, 40), whole=True),
        Number("visitors", "visitors on Thursday", 0, 0, 1000, (0, 1, 10, 40, 100), whole=True),
        Choice("treat", "what to do about it", _TREATMENTS, "keep"),
    )
    buttons = (
        Button("Nobody came (0 ÷ 0)"),
        Button("Visitors not counted (5 ÷ 0)", {"sold": 5}),
        Button("An ordinary day", {"sold": 12, "visitors": 40}),
    )
    buttons_label = "Thursday:"

    def compute(self, sold: int, visitors: int, treat: str) -> Week:
        return Week(week(sold, visitors, treat)[0], sold, visitors, treat)

    def chart(self, result: Week) -> Grid:
        return sheet(result.sold, result.visitors, result.treat)

    def sentence(self, result: Week) -> str:
        average = result.sheet.average.item()
        if result.treat == "replace" and result.visitors == 0:
            return f"No cell is spoiled. Thursday counts as a day with a share of 0; the average says {_say(average)}."
        if result.treat == "leave out" and result.visitors == 0:
            return f"Thursday is left out, and the average of the other four days is {_say(average)}."
        bad = spoiled(result.sheet)
        if not bad:
            return f"Every cell is a number; the average is {_say(average)}."
        share = result.sheet.share[THURSDAY].item()
        return f"Thursday's share is {share}. The average is {_say(average)}, and {bad} of 11 cells are spoiled."

    def summary(self, result: Week) -> str:
        bad = 0 if result.treat != "keep" else spoiled(result.sheet)
        return f"average {_say(result.sheet.average.item())} · spoiled cells {bad}"

    def settings(self) -> str:
        return super().settings().removesuffix(", keep")


def _say(share: float) -> str:
    return f"{100 * share:.3g} %" if math.isfinite(share) else f"{share}"
