"""The valley lab of the beginner's lesson 02: how long a step may be before the walk leaves the valley."""

from dataclasses import dataclass

from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Number
from nanlab.lessons.loss_explosion.pictures import valley, walk
from nanlab.plots import Chart, number


@dataclass(frozen=True)
class Walk:
    """A walk and the learning rate that made it."""

    learning_rate: float
    places: list[float]

    @property
    def heights(self) -> list[float]:
        return [place * place for place in self.places]


class ValleyLab(Lab):
    """One walk in the valley for each setting of the controls."""

    controls = (
        Number("learning_rate", "learning rate", 0.1, 0.001, 3.0, (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.1, 1.2, 1.5)),
        Number("steps", "steps", 4, 1, 12, whole=True),
    )
    buttons = (
        Button("Short steps"),
        Button("Just right", {"learning_rate": 0.5}),
        Button("A little too long", {"learning_rate": 0.9}),
        Button("Far too long", {"learning_rate": 1.2}),
    )
    buttons_label = "Try:"

    def compute(self, learning_rate: float, steps: int) -> Walk:
        return Walk(learning_rate, walk(learning_rate, steps))

    def chart(self, result: Walk) -> Chart:
        return valley(result.learning_rate, len(result.places) - 1)

    def sentence(self, result: Walk) -> str:
        first, last = result.heights[0], result.heights[-1]
        ended = f"You began at a height of {first:g} and stand at {number(last, 3)} now."
        if result.places[1] == 0:
            return f"{ended} The first step ended exactly at the bottom."
        if abs(last - first) < 1e-9:
            return f"{ended} Every step lands across the valley, exactly as high as it began, for ever."
        if last > first:
            return f"{ended} Every step crosses the valley and lands higher than it began: an explosion."
        crossing = "Every step crosses the valley, and lands lower" if result.places[1] > 0 else "Every step goes down"
        return f"{ended} {crossing}."

    def summary(self, result: Walk) -> str:
        return f"from a height of {number(result.heights[0], 3)} to {number(result.heights[-1], 3)}"
