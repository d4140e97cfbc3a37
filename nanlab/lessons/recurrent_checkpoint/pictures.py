"""The six runs of the checkpoint side by side, each loss on axes of its own. For the beginner's checkpoint."""

from nanlab.lessons.recurrent_checkpoint.cases import CASES
from nanlab.plots import Chart, Panels, Series


def six_losses() -> Panels:
    """The loss of every case, two small charts a row. Six short runs, about 0.2 s."""
    charts = [
        Chart(
            f"Run {letter.upper()}",
            "step",
            "",  # the title says it
            (Series("loss", case.run().loss),),
            y_log=True,
            plain=True,
            digits=1,
            width=320,
            height=230,
        )
        for letter, case in CASES.items()
    ]
    return Panels("Six runs: the loss", charts)
