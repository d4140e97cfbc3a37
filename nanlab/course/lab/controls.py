"""What a lab declares: its number fields, its lists and its buttons. No widget is made here.

A control checks what was entered and says in plain words what is wrong with it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nanlab.course import entered
from nanlab.course.front import form


@dataclass(frozen=True)
class Number:
    """A number that the learner types, or steps through with − and + along `ladder` (by 1 where there is none)."""

    name: str  # the argument of `compute`
    label: str  # what the learner reads
    value: float
    low: float = -math.inf
    high: float = math.inf
    ladder: Sequence[float] = ()
    whole: bool = False
    hint: str = ""  # shown where the message stands while nothing is wrong

    def parse(self, text: str) -> float:
        """The number in `text`; ValueError with a sentence for the learner where it is none or out of range."""
        return self.check(entered.parse(text))

    def check(self, number: float) -> float:
        """`number` itself when this control allows it; else ValueError."""
        number = float(number)
        if not math.isfinite(number):
            raise ValueError("type a finite number")
        if not self.low <= number <= self.high:
            raise ValueError(self._range())
        if self.whole and number != int(number):
            raise ValueError("type a whole number")
        return int(number) if self.whole else number

    def step(self, number: float, up: bool) -> float:
        """The next value above or below `number`; `number` itself at the end."""
        rungs = sorted(self.ladder)
        if not rungs:
            rungs = [number - 1, number + 1]
        above, below = [r for r in rungs if r > number], [r for r in rungs if r < number]
        new = (above[0] if above else number) if up else (below[-1] if below else number)
        return new if self.low <= new <= self.high else number

    def say(self, value: float) -> str:
        return f"{self.name}={value:g}"

    def write(self, value: float) -> str:
        """`value` as it stands in the field."""
        return f"{value:g}"

    def rung(self, value: float) -> int:
        """Which step of the ladder lies nearest below `value`: where the slider stands."""
        return max(sum(step <= value for step in self.ladder) - 1, 0)

    def about(self) -> dict:
        """This control as the front end wants it."""
        return form.control("number", self.name, self.label, hint=self.hint, rungs=len(self.ladder))

    def _range(self) -> str:
        if self.high == math.inf:
            return f"type {self.low:g} or more"
        if self.low == -math.inf:
            return f"type {self.high:g} or less"
        return f"type a number from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Choice:
    """One of `options`: values, or a mapping from what the learner reads to the value."""

    name: str
    label: str
    options: Sequence | Mapping[str, object]
    value: object

    @property
    def pairs(self) -> list[tuple[str, object]]:
        if isinstance(self.options, Mapping):
            return list(self.options.items())
        return [(f"{v:g}" if isinstance(v, float) else str(v), v) for v in self.options]

    def check(self, value: Any) -> Any:
        """`value` itself when it is one of the options; else ValueError."""
        if value not in [option for _, option in self.pairs]:
            raise ValueError(f"choose one of {', '.join(text for text, _ in self.pairs)}")
        return value

    def say(self, value: Any) -> str:
        return value if isinstance(value, str) else f"{self.name}={value:g}"

    def write(self, value: object) -> str:
        """The place of `value` among the options, as the front end has it."""
        return str([option for _, option in self.pairs].index(value))

    def parse(self, text: str) -> object:
        """The option at the place `text`; ValueError where there is none."""
        places = {str(n): value for n, (_, value) in enumerate(self.pairs)}
        if text not in places:
            raise ValueError("choose one of the list")
        return places[text]

    def about(self) -> dict:
        """This control as the front end wants it: a few short options side by side, more of them as a list."""
        options = [text for text, _ in self.pairs]
        kind = "radio" if len(options) <= 4 and sum(map(len, options)) <= 20 else "select"
        return form.control(kind, self.name, self.label, options=options)


@dataclass(frozen=True)
class Button:
    """A button that sets some controls to `sets` and all others back to where the lab began."""

    label: str
    sets: Mapping[str, object] = field(default_factory=dict)


Control = Number | Choice
