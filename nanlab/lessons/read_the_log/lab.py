"""Paste a log, get a diagnosis: lesson 11 and the start page. Nothing leaves the machine."""

from nanlab.course.lab import page
from nanlab.course.live import with_view

WAITING = "Paste a log above, then press Diagnose. Nothing leaves your machine."


class LogLab:
    """A text area, a button, and what ``nanlab.diagnose`` says of the text. `text` is a log to begin with."""

    def __init__(self, text: str = ""):
        self.text, self._box = text, None

    @property
    def widget(self):
        """The live view, made when first asked for. Needs ipywidgets."""
        if self._box is None:
            self._box = self._build()
        return self._box

    def _build(self):
        import ipywidgets as w

        wide = w.Layout(width="auto", height="180px")
        self.area = w.Textarea(
            value=self.text, description="log", placeholder="Paste the lines of a training run here", layout=wide
        )
        self.area.add_class("nanlab-field")
        self.area.add_class("nanlab-log")
        self.button = w.Button(description="Diagnose", layout=w.Layout(width="auto", align_self="flex-start"))
        self.answer = w.HTML(page.sentence(WAITING))
        self.button.on_click(lambda _: self.diagnose())
        box = w.VBox([w.HTML(page.STYLE), self.area, self.button, self.answer], layout=w.Layout(overflow="visible"))
        box.add_class("nanlab-lab")
        return box

    def diagnose(self) -> None:
        """Diagnose what stands in the text area."""
        if not self.area.value.strip():
            self.answer.value = page.sentence("There is nothing to read yet. " + WAITING)
            return
        from nanlab.doctor import diagnose

        self.answer.value = page.sentence("Reading the log …")
        try:
            report = diagnose(self.area.value)
        except ValueError as wrong:
            self.answer.value = page.sentence(f"This log can't be read: {wrong}")
            return
        self.answer.value = page.sentence("Read. The diagnosis:") + report._repr_html_()

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        data = {"text/plain": "A box to paste a log into, and a button: Diagnose."}
        data["text/html"] = "<p>With a running kernel, a box to paste a log into stands here.</p>"
        return with_view(data, lambda: self.widget, "It")
