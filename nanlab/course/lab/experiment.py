"""What a lab computes and says, without its view: controls, their values, and the result that belongs to them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch

from nanlab.course.history import Fix
from nanlab.course.lab.controls import Button, Control
from nanlab.course.lab.entry import Entry
from nanlab.course.lab.map import Line, Map
from nanlab.plots import Chart
from nanlab.plots.show import Figure

DEPTHS = ("beginner", "developer", "researcher")


class Experiment(ABC):
    """Declared by each lab; see ``Lab``. `changed` is called after each new result, once a view has set it."""

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
        self.changed: Callable[[], None] | None = None
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
        """The picture of the present result, with the curves of the one before it pale behind."""
        now = self.chart(self.result)
        if self.previous is None or not isinstance(now, Chart):
            return now
        before = self.chart(self.previous)
        if not isinstance(before, Chart) or (before.x_label, before.y_label) != (now.x_label, now.y_label):
            return now
        return replace(now, ghosts=before.series)

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
            if self.changed is None:
                raise
            return f"These settings cannot be run: {wrong} The picture shows the last that could."
        self.values, self.previous, self.result = values, self.result, result
        if self.changed is not None:
            self.changed()
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
