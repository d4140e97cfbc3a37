"""The numbers that each box holds, as marks on a ruler, and the lab that zooms in. Used by the beginner's lesson 04."""

import math
from dataclasses import dataclass

from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Number
from nanlab.formats import Format
from nanlab.lessons.small_boxes.pictures import BOXES, plain
from nanlab.plots import look
from nanlab.plots.shapes import Path, Picture, Point, Rect, Text
from nanlab.plots.show import Figure

_LEFT, _RIGHT, _TOP, _ROW = 150, 600, 84, 58
_MOST = 90  # marks; more than these would touch


@dataclass(frozen=True)
class Ruler(Figure):
    """The marks of the three boxes up to `reach` to each side of `number`, and where `number` comes to lie."""

    number: float
    reach: float
    title: str = "The numbers that each box can hold"
    width: int = 640

    def picture(self) -> Picture:
        picture = Picture(self.width, _TOP + _ROW * len(BOXES), "; ".join(self.words().split("\n")))
        picture.add(Text(16, 25, self.title, look.TITLE_SIZE, bold=True))
        x = self._x(self.number)
        picture.add(Text(x, 50, plain(self.number), look.LABEL_SIZE, "middle", bold=True))
        picture.add(Path(((x, 56), (x, _TOP + _ROW * len(BOXES) - 22)), look.SERIES[0], 1.0, (3, 3)))
        for row, (name, box) in enumerate(BOXES.items()):
            self._ruler(picture, _TOP + _ROW * row, name, box)
        return picture

    def _ruler(self, picture: Picture, y: int, name: str, box: Format) -> None:
        picture.add(Text(_LEFT - 12, y + 4, name, look.LABEL_SIZE, "end", look.QUIET))
        picture.add(Path(((_LEFT, y), (_RIGHT, y)), look.GRID, 1.5))
        marks = self.marks(box)
        if marks is None:
            picture.add(Rect(_LEFT, y - 8, _RIGHT - _LEFT, 16, look.EDGE))
        for mark in marks or ():
            picture.add(Path(((self._x(mark), y - 8), (self._x(mark), y + 8)), look.INK, 1.2))
        held = box.round(self.number)
        if not math.isfinite(held):
            picture.add(Point(_RIGHT + 12, y, "triangle", look.DANGER, 6))
            picture.add(Text(_RIGHT, y + 24, f"{held:g}: past the last mark", look.TICK_SIZE, "end", look.DANGER_TEXT))
            return
        if abs(held - self.number) <= self.reach:
            picture.add(Point(self._x(held), y, "circle", look.SERIES[0], 6))
        lost = held == 0 != self.number
        colour = look.DANGER_TEXT if lost else look.INK
        middle = (_LEFT + _RIGHT) // 2
        picture.add(Text(middle, y + 24, f"holds {plain(held)}", look.TICK_SIZE, "middle", colour, lost, halo=True))

    def marks(self, box: Format) -> list[float] | None:
        """The numbers of `box` in view, or None where they are too many to draw."""
        low, high = self.number - self.reach, self.number + self.reach
        mark, found = box.round(low), []
        while mark <= high and math.isfinite(mark):
            found += [mark] if mark >= low else []
            if len(found) > _MOST:
                return None
            mark = box.up(mark)
        return found

    def words(self) -> str:
        lines = [f"[ruler] {plain(self.number)}, and {plain(self.reach)} to each side"]
        for name, box in BOXES.items():
            marks = self.marks(box)
            seen = f"more than {_MOST}" if marks is None else len(marks)
            lines.append(f"  {name}: marks in view {seen}, holds {plain(box.round(self.number))}")
        return "\n".join(lines)

    def _x(self, value: float) -> float:
        part = (value - self.number + self.reach) / (2 * self.reach)
        return round(_LEFT + part * (_RIGHT - _LEFT), 1)


class RulerLab(Lab):
    """Put a number on the ruler, and zoom."""

    controls = (
        Number("number", "number", 65_504, -1e30, 1e30),
        Number(
            "reach",
            "look this far to each side",
            300,
            1e-9,
            1e30,
            (1e-7, 1e-6, 1e-4, 0.01, 0.1, 1, 10, 100, 300, 1000, 10_000, 100_000),
        ),
    )
    buttons = (
        Button("The end of the small box"),
        Button("60,001", {"number": 60_001, "reach": 300}),
        Button("Near 1", {"number": 1.001, "reach": 0.02}),
        Button("Near 0", {"number": 1e-8, "reach": 4e-7}),
    )
    buttons_label = "Go to:"

    def compute(self, number: float, reach: float) -> Ruler:
        return Ruler(number, reach)

    def chart(self, result: Ruler) -> Ruler:
        return result

    def sentence(self, result: Ruler) -> str:
        told = []
        for name, box in BOXES.items():
            held = box.round(result.number)
            short = name.partition(" (")[0]
            if not math.isfinite(held):
                told.append(f"The {short} has no mark up there: {held:g}.")
            elif held == result.number:
                told.append(f"The {short} holds it exactly.")
            else:
                told.append(f"The {short} makes it {plain(held)}.")
        return " ".join(told)

    def summary(self, result: Ruler) -> str:
        return ", ".join(f"{name} {plain(box.round(result.number))}" for name, box in BOXES.items())
