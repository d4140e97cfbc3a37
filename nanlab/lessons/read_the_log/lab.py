"""Paste a log, get a diagnosis: lesson 11 and the start page. Nothing leaves the machine."""

from typing import Any

from nanlab.course.front import form, front
from nanlab.course.live import with_view

WAITING = "Paste a log above, then press Diagnose. Nothing leaves your machine."


class LogLab:
    """A text area, a button, and what ``nanlab.diagnose`` says of the text. `text` is a log to begin with."""

    def __init__(self, text: str = ""):
        self.text = text
        self._widget: Any = None

    @property
    def widget(self):
        """The live view, made when first asked for. ImportError without widgets."""
        if self._widget is None:
            area = form.control("area", "log", "log", placeholder="Paste the lines of a training run here")
            self._widget = front(form.form("page", [area], ["Diagnose"], live=False), self.asked)
            self._show(WAITING)
        return self._widget

    def asked(self, event: dict) -> None:
        """Diagnose what stands in the text area."""
        self.text = event["texts"]["log"]
        if not self.text.strip():
            self._show(f"There is nothing to read yet. {WAITING}")
            return
        from nanlab.doctor import diagnose

        try:
            report = diagnose(self.text)
        except ValueError as wrong:
            self._show(f"This log can't be read: {wrong}")
            return
        self._show("Read. The diagnosis:", report._repr_html_())

    def _show(self, sentence: str, card: str = "") -> None:
        state = {"log": form.state(self.text)}
        self._widget.show(controls=state, buttons=[form.button()], sentence=sentence, more=card)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        data = {"text/plain": "A box to paste a log into, and a button: Diagnose."}
        data["text/html"] = "<p>With a running kernel, a box to paste a log into stands here.</p>"
        return with_view(data, lambda: self.widget, "It")
