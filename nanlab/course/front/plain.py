"""The same view as plain ipywidgets, where anywidget is missing: no slider, no map, and keys reach the notebook."""

from collections.abc import Callable
from html import escape

import ipywidgets as w

_STYLE = "<style>.nanlab-plain .widget-html-content{line-height:1.45;font-size:14px}</style>"
_SHRINK = {"description_width": "initial"}


class Plain(w.VBox):
    """See ``front``."""

    def __init__(self, form: dict, asked: Callable[[dict], None]):
        self._form, self._asked, self._quiet = form, asked, False
        self.shown: dict = {"controls": {}, "buttons": [], "sentence": ""}
        self._fields = {about["name"]: _field(about) for about in form["controls"]}
        self._messages = {name: w.HTML() for name in self._fields}
        self._buttons = [w.Button(description=label, layout=w.Layout(width="auto")) for label in form["buttons"]]
        self._picture, self._sentence, self._more = w.HTML(), w.HTML(), w.HTML()
        for name, field in self._fields.items():
            field.observe(lambda _, name=name: self._typed(name), "value")
        for n, button in enumerate(self._buttons):
            button.on_click(lambda _, n=n: self._asked({"press": n, "texts": self._texts()}))
        rows = [part for name in self._fields for part in (self._fields[name], self._messages[name])]
        wrap = w.Layout(flex_flow="row wrap", overflow="visible")
        bar = w.HBox([w.Label(form["buttons_label"]), *self._buttons], layout=wrap)
        parts = [w.HTML(_STYLE + form["head"]), *rows, bar, self._picture, self._sentence, self._more]
        super().__init__(parts, layout=w.Layout(overflow="visible"))
        self.add_class("nanlab-plain")

    def show(self, picture: str | None = None, map: dict | None = None, **shown) -> None:
        """Show an SVG string and whatever else changed; a map is left out."""
        self.shown |= shown
        if picture is not None:
            self._picture.value = picture
        self._sentence.value = f'<div role="status" aria-live="polite">{escape(self.shown["sentence"])}</div>'
        self._more.value = self.shown.get("more") or ""
        for name, state in self.shown["controls"].items():
            self._put(name, state)
        for button, state in zip(self._buttons, self.shown["buttons"], strict=True):
            button.layout.display = "none" if state["hidden"] else None
            button.button_style = "info" if state["pressed"] else ""

    def _put(self, name: str, state: dict) -> None:
        field, self._quiet = self._fields[name], True
        field.disabled = bool(self.shown.get("fixed"))
        if state["moves"] != getattr(field, "moves", None):
            field.moves = state["moves"]
            _write(field, state["text"])
        self._messages[name].value = escape(state["message"])
        self._quiet = False

    def _typed(self, name: str) -> None:
        if self._form["live"] and not self._quiet:
            self._asked({"name": name, "text": _read(self._fields[name])})

    def _texts(self) -> dict[str, str]:
        return {name: _read(field) for name, field in self._fields.items()}


def _field(about: dict):
    label, kind = about["label"], about["kind"]
    if kind in ("select", "radio"):
        make = w.Dropdown if kind == "select" else w.RadioButtons
        options = [(text, n) for n, text in enumerate(about["options"])]
        return make(options=options, value=None, description=label, style=_SHRINK, layout=w.Layout(width="auto"))
    make = w.Textarea if kind == "area" else w.Text
    return make(description=label, placeholder=about.get("placeholder", ""), style=_SHRINK)


def _read(field) -> str:
    return "" if field.value is None else str(field.value)


def _write(field, text: str) -> None:
    field.value = text if isinstance(field, (w.Text, w.Textarea)) else int(text) if text else None
