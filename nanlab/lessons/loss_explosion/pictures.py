"""Pictures for the beginner's lessons: what a training step is, drawn as a walk in a valley. Used by lesson 02."""

from nanlab.plots import Chart, Series

START = -2.0  # where every walk begins, as a position left of the bottom


def valley(learning_rate: float = 0.1, steps: int = 0) -> Chart:
    """A walk of `steps` gradient-descent steps down the valley ``loss = position²``, as a chart.

    The slope at a position is twice the position, so a step multiplies it by ``1 - 2 * learning_rate``: the walk ends
    at the bottom for rates below 1 and leaves the valley for rates above.
    """
    walk = [START]
    for _ in range(steps):
        walk.append(walk[-1] * (1 - 2 * learning_rate))
    reach = 1.25 * max(abs(place) for place in walk)
    ground = [reach * (n / 40 - 1) for n in range(81)]
    path = "you stand here" if steps == 0 else f"{steps} steps"
    return Chart(
        title="The valley" if steps == 0 else f"Learning rate {learning_rate:g}",
        x_label="position",
        y_label="loss (height)",
        series=(
            Series("the valley", [x * x for x in ground], ground),
            Series(path, [x * x for x in walk], walk, line=steps > 0),
        ),
        alt=_words(walk),
    )


def _words(walk: list[float]) -> str:
    if len(walk) == 1:
        return f"A valley. You stand on its left slope at a height of {walk[0] ** 2:g}; the bottom is at height 0."
    heights = ", ".join(f"{place * place:.2g}" for place in walk)
    sides = "crosses the valley at every step" if walk[1] > 0 else "stays on the left slope"
    return f"A walk in the valley. It {sides}. Heights: {heights}."
