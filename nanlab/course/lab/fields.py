"""Controls as ipywidgets: labelled, usable by keyboard, with a message beside the field.

ipywidgets' sliders have no accessible name and Python can't give them one, so numbers are text fields with two buttons.
"""

from collections.abc import Callable
from html import escape
from typing import Any

from nanlab.course.lab.controls import Choice, Control, Number


class NumberField:
    """A text field with − and +. An invalid entry is answered beside the field and changes nothing else."""

    def __init__(self, control: Number, value: float, changed: Callable[[str, float], None]):
        import ipywidgets as w

        self.control, self.value, self._changed, self._quiet = control, value, changed, False
        self.text = w.Text(
            value=f"{value:g}",
            description=control.label,
            style={"description_width": "initial"},
            layout=w.Layout(width="auto"),
        )
        self.text.add_class("nanlab-field")
        buttons = [self._stepper("−", "lower", up=False), self._stepper("+", "higher", up=True)]
        self.message = w.HTML(_message(control.hint, bad=False), layout=w.Layout(margin="0 0 0 2px"))
        row = w.HBox([self.text, *buttons], layout=w.Layout(align_items="flex-end", overflow="visible"))
        self.widget = w.VBox([row, self.message], layout=w.Layout(overflow="visible"))
        self.text.observe(self._typed, "value")

    def show(self, value: float) -> None:
        """Put `value` into the field without calling back."""
        self.value, self._quiet = value, True
        self.text.value = f"{value:g}"
        self._quiet = False
        self._say("")

    def _stepper(self, sign: str, word: str, up: bool):
        import ipywidgets as w

        tooltip = f"{word} {self.control.label}"
        button = w.Button(description=sign, tooltip=tooltip, layout=w.Layout(margin="2px 0 2px 2px"))
        button.add_class("nanlab-step")
        button.on_click(lambda _: self._stepped(up))
        return button

    def _stepped(self, up: bool) -> None:
        new = self.control.step(self.value, up)
        if f"{new:g}" != self.text.value:
            self.text.value = f"{new:g}"
        else:
            self._say(f"{new:g} is the {'highest' if up else 'lowest'} step")

    def _typed(self, change) -> None:
        if self._quiet:
            return
        try:
            value = self.control.parse(change["new"])
        except ValueError as wrong:
            self._say(str(wrong), bad=True)
            return
        self._say("")
        if value != self.value:
            self.value = value
            self._changed(self.control.name, value)

    def _say(self, text: str, bad: bool = False) -> None:
        (self.text.add_class if bad else self.text.remove_class)("nanlab-invalid")
        self.message.value = _message(text or self.control.hint, bad)


class ChoiceField:
    """A labelled list."""

    def __init__(self, control: Choice, value: object, changed: Callable[[str, object], None]):
        import ipywidgets as w

        self.control, self._changed, self._quiet = control, changed, False
        self.widget = w.Dropdown(
            options=control.pairs,
            value=value,
            description=control.label,
            tooltip="Space opens the list",  # JupyterLab keeps the bare arrow keys for moving between cells
            style={"description_width": "initial"},
            layout=w.Layout(width="auto"),
        )
        self.widget.add_class("nanlab-field")
        self.widget.observe(self._chosen, "value")

    def show(self, value: object) -> None:
        """Choose `value` without calling back."""
        self._quiet = True
        self.widget.value = value
        self._quiet = False

    def _chosen(self, change) -> None:
        if not self._quiet:
            self._changed(self.control.name, change["new"])


def field(control: Control, value: Any, changed: Callable[[str, object], None]) -> NumberField | ChoiceField:
    """The widget for `control`, showing `value`; `changed(name, value)` is called for every valid entry."""
    if isinstance(control, Number):
        return NumberField(control, value, changed)
    return ChoiceField(control, value, changed)


def _message(text: str, bad: bool) -> str:
    tone = "nanlab-bad" if bad else "nanlab-quiet"
    return f'<div class="nanlab-message {tone}" role="status" aria-live="polite">{escape(text)}</div>'
