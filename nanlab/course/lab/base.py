"""What every lab is: controls, a live picture, and a sentence that says what the picture shows.

A new lab declares `controls` and writes `compute`, `chart`, `sentence` and `summary`: see ``loss_explosion/lab.py``.
As the last expression of a cell a lab shows three ways: live with a kernel, as a PNG without one, and as the text of
`summary`, which is the same on every processor and is what nbval compares.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from nanlab.course.history import Fix
from nanlab.course.lab.controls import Button, Control
from nanlab.course.lab.entry import Entry
from nanlab.course.lab.still import with_sentence
from nanlab.course.lab.survey import Line, Map
from nanlab.course.live import with_view
from nanlab.plots.show import Figure, bundle

DEPTHS = ("beginner", "developer", "researcher")


class Lab(ABC):
    """Base of all labs. Keyword arguments set the controls' first values: ``ExplosionLab(lr=0.001)``.

    `depth` is the reader's: at "beginner" only the controls named in `beginner` are shown and `plain` is said; at
    "researcher" `formula` follows the sentence. It changes nothing that is stored as text.

    Side effect: none; torch's random state and thread count are as they were after each run. Every valid entry runs
    `compute` once, so it should take well under 30 ms. A ValueError from `compute` is shown as the sentence, beside the
    last picture.
    """

    controls: ClassVar[tuple[Control, ...]]
    beginner: ClassVar[tuple[str, ...]] = ()  # names of the controls for beginners; empty: all of them
    buttons: ClassVar[tuple[Button, ...]] = ()
    buttons_label: ClassVar[str] = ""
    map: ClassVar[Map | None] = None  # two controls against each other; needs `fate`

    def __init__(self, *, depth: str = "developer", **initial):
        if depth not in DEPTHS:
            raise ValueError(f"depth is one of {', '.join(DEPTHS)}, not {depth!r}")
        names = {control.name for control in self.controls}
        if unknown := set(initial) - names:
            raise TypeError(f"{type(self).__name__} has no control {sorted(unknown)}; it has {sorted(names)}")
        self.depth = depth
        self.previous: Any = None
        self._view: Any = None
        self.values: dict[str, Any] = {}
        for control in self.controls:
            try:
                self.values[control.name] = control.check(initial.get(control.name, control.value))
            except ValueError as wrong:
                raise ValueError(f"{control.name}: {wrong}") from None
        self.entries = {control.name: Entry(control, self.values[control.name]) for control in self.controls}
        self.result = self.computed(self.values)

    @abstractmethod
    def compute(self, *args: Any, **values: Any) -> Any:
        """The result for the controls' `values`; may seed torch."""

    @abstractmethod
    def chart(self, result: Any) -> Figure:
        """The picture of `result`."""

    @abstractmethod
    def sentence(self, result: Any) -> str:
        """One or two sentences that say what the picture shows. Live only, so any digits may stand in it."""

    @abstractmethod
    def summary(self, result: Any) -> str:
        """What happened, without the settings, the same on every processor (nbval compares it)."""

    def plain(self, result: Any) -> str:
        """The sentence for beginners: everyday words, no formula."""
        return self.sentence(result)

    def formula(self, result: Any) -> str:
        """What a researcher reads after the sentence: the law, with this run's numbers in it."""
        return ""

    def fate(self, result: Any) -> tuple[int, str]:
        """For a lab with a map: which of its kinds `result` is, and what stands in its cell (such as a step)."""
        raise NotImplementedError(f"{type(self).__name__} has a map and no fate")

    def theory(self) -> Sequence[Line]:
        """For a lab with a map: the lines that a researcher sees in it."""
        return ()

    def live_chart(self) -> Figure:
        """The picture of the present result, with the one before it behind."""
        return self.chart(self.result)

    def table(self, result: Any) -> tuple[Sequence[str], Sequence[Sequence[str]]] | None:
        """Headings and rows to show under the picture, or None."""
        return None

    def fix_among(self, fixes: Sequence[Fix], values: dict[str, Any]) -> Fix | None:
        """The one of `fixes` that takes the lab as it begins to these `values`, if one does."""
        standard = {control.name: control.value for control in self.controls}
        return next((fix for fix in fixes if standard | fix.knobs == values), None)

    def settings(self) -> str:
        """The controls' values in a line, such as "lr=0.1, scale=10, float32"."""
        return ", ".join(control.say(self.values[control.name]) for control in self.controls)

    def said(self) -> str:
        """What this depth reads of the present result."""
        if self.depth == "beginner":
            return self.plain(self.result)
        more = self.formula(self.result) if self.depth == "researcher" else ""
        return f"{self.sentence(self.result)} {more}".strip()

    def code(self) -> str:
        """A cell that shows this state again."""
        package = type(self).__module__.rpartition(".")[0]
        changed = {c.name: self.values[c.name] for c in self.controls if self.values[c.name] != c.value}
        shown = changed | ({} if self.depth == "developer" else {"depth": self.depth})
        arguments = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"from {package} import {type(self).__name__}\n\n{type(self).__name__}({arguments})"

    def set(self, **values) -> None:
        """Change controls as a learner would; ValueError for what a control does not allow."""
        checked = {name: self.entries[name].control.check(value) for name, value in values.items()}
        for name, value in checked.items():
            self.entries[name].put(value)
        self.run({**self.values, **checked})

    def run(self, values: dict[str, Any]) -> str:
        """Compute `values` and show them; returns what went wrong, "" where nothing did. Raises it without a view."""
        try:
            result = self.computed(values)
        except ValueError as wrong:
            if self._view is None:
                raise
            return f"These settings cannot be run: {wrong} The picture shows the last that could."
        self.values, self.previous, self.result = values, self.result, result
        if self._view is not None:
            self._view.draw()
        return ""

    def computed(self, values: dict[str, Any]) -> Any:
        """`compute` on one thread of torch, leaving its random state and its threads as they were."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # a lab's tensors are small: more threads would only contend
        try:
            with torch.random.fork_rng(devices=[]):
                return self.compute(**values)
        finally:
            torch.set_num_threads(threads)

    @property
    def view(self):
        """The live view, made when first asked for. ImportError without widgets."""
        if self._view is None:
            from nanlab.course.lab.view import LabView

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
