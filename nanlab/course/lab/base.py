"""What every lab is: controls, a live picture, and a sentence that says what the picture shows.

A new lab declares `controls` and writes `compute`, `chart`, `sentence` and `summary`: see ``loss_explosion/lab.py``.
As the last expression of a cell a lab shows three ways: live with a kernel, as a PNG without one, and as the text of
`summary`, which is the same on every processor and is what nbval compares.
"""

from nanlab.course.lab.experiment import DEPTHS, Experiment
from nanlab.course.lab.still import with_sentence
from nanlab.course.lab.view import LabView
from nanlab.course.live import with_view
from nanlab.plots.show import bundle

__all__ = ["DEPTHS", "Lab"]


class Lab(Experiment):
    """Base of all labs. Keyword arguments set the controls' first values: ``ExplosionLab(lr=0.001)``.

    `depth` is the reader's: at "beginner" only the controls named in `beginner` are shown and `plain` is said; at
    "researcher" `formula` follows the sentence. It changes nothing that is stored as text.

    Side effect: none; torch's random state and thread count are as they were after each run. Every valid entry runs
    `compute` once, so it should take well under 30 ms. A ValueError from `compute` is shown as the sentence, beside the
    last picture.
    """

    _view: LabView | None = None

    @property
    def view(self) -> LabView:
        """The live view, made when first asked for. ImportError without widgets."""
        if self._view is None:
            self._view = LabView(self)
        return self._view

    @property
    def widget(self):
        """The widget of the live view."""
        return self.view.widget

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        picture = with_sentence(self.chart(self.result).picture(), self.said())
        data, metadata = bundle(picture, f"{self.settings()} · {self.summary(self.result)}")
        return with_view(data, lambda: self.widget, "The live lab"), metadata
