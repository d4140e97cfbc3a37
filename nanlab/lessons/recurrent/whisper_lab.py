"""The whisper lab of the beginner's lesson 06: a message goes round a circle, a little louder at each person."""

from dataclasses import dataclass

from nanlab.course.history import first_nonfinite
from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Number
from nanlab.lessons.recurrent.pictures import circle
from nanlab.lessons.recurrent.whisper import pass_on, told
from nanlab.plots import Chart, number

_SHOUT = 20.0


@dataclass(frozen=True)
class Round:
    """What each person heard."""

    times: float
    heard: list[float]


class WhisperLab(Lab):
    """One round of the whisper for each setting of the controls."""

    controls = (
        Number("times", "each repeats it … times as loud", 1.1, 0.1, 10.0, (0.8, 0.9, 0.99, 1.0, 1.01, 1.1, 1.2, 2.0)),
        Number("people", "people in the circle", 100, 2, 2000, (10, 20, 50, 100, 200, 500, 1000, 2000), whole=True),
    )
    buttons = (
        Button("Start again"),
        Button("Repeat exactly as loud", {"times": 1.0}),
        Button("A circle of 20", {"people": 20}),
    )
    buttons_label = "One change at a time:"

    def compute(self, times: float, people: int) -> Round:
        return Round(times, pass_on(times, people))

    def chart(self, result: Round) -> Chart:
        return circle(result.times, people=len(result.heard))

    def sentence(self, result: Round) -> str:
        heard, bad = result.heard, first_nonfinite(result.heard)
        if bad is not None:
            return f"{told(heard)[0].upper()}{told(heard)[1:]}. What everybody after that hears is no number."
        if result.times == 1:
            return f"All {len(heard)} people hear the same. A circle of any size can work like this."
        word = "It can no longer be heard." if heard[-1] < 0.01 else "That is a shout." if heard[-1] > _SHOUT else ""
        change = "louder" if result.times > 1 else "quieter"
        return f"Each person repeats it {change}, by the same factor, and {told(heard)}. {word}".strip()

    def summary(self, result: Round) -> str:
        bad = first_nonfinite(result.heard)
        first = "none" if bad is None else f"person {bad + 1}"
        return f"the last person hears {number(result.heard[-1], 3)} · first that does not fit: {first}"
