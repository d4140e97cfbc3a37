"""Pictures for the beginner's lessons: what a training step is, drawn as a walk in a valley, and a run whose axis is in
words. Used by lesson 02 and its valley lab.
"""

import torch

from nanlab.course.history import History
from nanlab.plots import Chart, Limit, Mark, Note, Series

START = -2.0  # where every walk begins, as a position left of the bottom
END_OF_THE_BOX = Limit(torch.finfo(torch.float32).max, "end of the box")


def walk(learning_rate: float, steps: int) -> list[float]:
    """The positions of `steps` gradient-descent steps down the valley ``loss = position²``, the start first.

    The slope at a position is twice the position, so a step multiplies it by ``1 - 2 * learning_rate``: the walk ends
    at the bottom for rates below 1 and leaves the valley for rates above.
    """
    places = [START]
    for _ in range(steps):
        places.append(places[-1] * (1 - 2 * learning_rate))
    return places


def valley(learning_rate: float = 0.1, steps: int = 0) -> Chart:
    """The `walk` in the valley, as a chart: an arrow a step, the start marked."""
    places = walk(learning_rate, steps)
    reach = 1.25 * max(abs(place) for place in places)
    ground = [reach * (n / 40 - 1) for n in range(81)]
    path = "you" if steps == 0 else "1 step" if steps == 1 else f"{steps} steps"
    return Chart(
        title="The valley" if steps == 0 else f"Learning rate {learning_rate:g}",
        x_label="where you stand (0 is the bottom)",
        y_label="height: the loss",
        series=(
            Series("the valley", [x * x for x in ground], ground),
            Series(path, [x * x for x in places], places, line=steps > 0, arrows=True),
        ),
        notes=(Note(START, START * START, "start"),),
        alt=_words(places),
    )


def explosion(history: History, title: str = "Loss, step by step") -> Chart:
    """The loss of a run, its vertical axis in words and the end of the box drawn in."""
    step = history.first_bad_step
    marks = () if step is None else (Mark(step, f"{history.loss[step]:g} at step {step}"),)
    series = (Series("loss", history.loss),)
    return Chart(title, "step", "loss", series, limits=(END_OF_THE_BOX,), marks=marks, y_log=True, plain=True)


def _words(places: list[float]) -> str:
    if len(places) == 1:
        return f"A valley. You stand on its left slope at a height of {places[0] ** 2:g}; the bottom is at height 0."
    heights = ", ".join(f"{place * place:.2g}" for place in places)
    sides = "crosses the valley at every step" if places[1] > 0 else "stays on the left slope"
    return f"A walk in the valley. It {sides}. Heights: {heights}."
