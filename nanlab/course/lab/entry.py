"""What stands in one control of a running lab: its value, the text of its field, and what is wrong with that text."""

from dataclasses import dataclass
from typing import Any

from nanlab.course.front import form
from nanlab.course.lab.controls import Control, Number


@dataclass
class Entry:
    """`value` is the last valid one; `moves` counts how often it was set from elsewhere than its own field."""

    control: Control
    value: Any
    text: str = ""
    message: str = ""
    bad: bool = False
    moves: int = 0

    def __post_init__(self):
        self.put(self.value)

    def put(self, value: Any) -> None:
        """Set `value` from elsewhere: by a button, the slider, the map, or code."""
        self.value, self.text = value, self.control.write(value)
        self.message, self.bad, self.moves = "", False, self.moves + 1

    def take(self, text: str) -> None:
        """What the learner typed or chose. An invalid text stays in the field, and the last valid value in force."""
        self.text, self.message, self.bad = text, "", False
        try:
            self.value = self.control.parse(text)
        except ValueError as wrong:
            self.message = f"{_sentence(str(wrong))} The picture shows {self.control.write(self.value)}."
            self.bad = True

    def step(self, up: bool) -> None:
        """Move one step along the ladder."""
        assert isinstance(self.control, Number), "only numbers have steps"
        new = self.control.step(self.value, up)
        stuck = new == self.value
        self.put(new)
        if stuck:
            self.message = f"{new:g} is the {'highest' if up else 'lowest'} step"

    def slide(self, rung: int) -> None:
        """Take the step of the ladder that the slider stands at."""
        assert isinstance(self.control, Number), "only numbers have sliders"
        self.put(self.control.check(sorted(self.control.ladder)[rung]))

    def state(self) -> dict:
        """This entry as the front end shows it."""
        shown = form.state(self.text, self.message, bad=self.bad, moves=self.moves)
        if isinstance(self.control, Number):
            shown |= {"rung": self.control.rung(self.value), "said": self.control.write(self.value)}
        return shown


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
