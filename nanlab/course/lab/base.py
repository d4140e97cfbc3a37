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
from nanlab.course.lab import page
from nanlab.course.lab.controls import Button, Control
from nanlab.course.live import with_view
from nanlab.plots.show import Figure


class Lab(ABC):
    """Base of all labs. Keyword arguments set the controls' first values: ``ExplosionLab(lr=0.001)``.

    Side effect: none; torch's random state is as it was after each run. Every valid entry runs `compute` once, so it
    should take well under 30 ms. A ValueError from `compute` is shown as the sentence, beside the last picture.
    """

    controls: ClassVar[tuple[Control, ...]]
    buttons: ClassVar[tuple[Button, ...]] = ()
    buttons_label: ClassVar[str] = ""

    def __init__(self, **initial):
        names = {control.name for control in self.controls}
        if unknown := set(initial) - names:
            raise TypeError(f"{type(self).__name__} has no control {sorted(unknown)}; it has {sorted(names)}")
        self.values: dict[str, Any] = {}
        for control in self.controls:
            try:
                self.values[control.name] = control.check(initial.get(control.name, control.value))
            except ValueError as wrong:
                raise ValueError(f"{control.name}: {wrong}") from None
        self._box: Any = None
        self._fields: dict[str, Any] = {}
        self.result = self._computed(self.values)

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

    def set(self, **values) -> None:
        """Change controls as a learner would; ValueError for what a control does not allow."""
        for control in self.controls:
            if control.name in values:
                values[control.name] = control.check(values[control.name])
        values = {**self.values, **values}
        for name, shown in self._fields.items():
            shown.show(values[name])
        self._go(values)

    @property
    def widget(self):
        """The live view, made when first asked for. Needs ipywidgets."""
        if self._box is None:
            self._box = self._build()
        return self._box

    def _computed(self, values: dict[str, Any]) -> Any:
        with torch.random.fork_rng(devices=[]):
            return self.compute(**values)

    def _go(self, values: dict[str, Any]) -> None:
        try:
            self.result = self._computed(values)
        except ValueError as wrong:
            if self._box is None:
                raise
            self._status.value = page.sentence(f"These settings cannot be run: {wrong}")
            return
        self.values = values
        if self._box is not None:
            self._draw()

    def _draw(self) -> None:
        self._picture.value = self.chart(self.result).svg()
        self._status.value = page.sentence(self.sentence(self.result))
        if (rows := self.table(self.result)) is not None:
            self._rows.value = page.table(*rows)

    def _build(self):
        import ipywidgets as w

        from nanlab.course.lab.fields import field

        self._fields = {c.name: field(c, self.values[c.name], self._changed) for c in self.controls}
        wrap = w.Layout(flex_flow="row wrap", overflow="visible", grid_gap="2px 14px", align_items="flex-start")
        parts = [w.HTML(page.STYLE), w.HBox([f.widget for f in self._fields.values()], layout=wrap)]
        if self.buttons:
            row = w.Layout(flex_flow="row wrap", overflow="visible", grid_gap="2px 2px", margin="0 0 6px")
            parts.append(w.HBox([w.Label(self.buttons_label), *map(self._button, self.buttons)], layout=row))
            parts[-1].add_class("nanlab-buttons")
        self._picture, self._status, self._rows = w.HTML(), w.HTML(), w.HTML()
        self._draw()
        parts += [self._picture, self._status, self._rows]
        box = w.VBox(parts, layout=w.Layout(overflow="visible"))
        box.add_class("nanlab-lab")
        return box

    def _button(self, button: Button):
        import ipywidgets as w

        widget = w.Button(description=button.label, layout=w.Layout(width="auto"))
        widget.on_click(lambda _: self._pressed(button))
        return widget

    def _pressed(self, button: Button) -> None:
        values = {control.name: control.value for control in self.controls} | dict(button.sets)
        self.set(**values)

    def _changed(self, name: str, value: object) -> None:
        self._go({**self.values, name: value})

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data, metadata = self.chart(self.result)._repr_mimebundle_()
        data["text/plain"] = f"{self.settings()} · {self.summary(self.result)}"
        return with_view(data, lambda: self.widget, "The live lab"), metadata
