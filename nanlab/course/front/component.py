"""The live view as one anywidget component, in plain JavaScript and CSS."""

import re
from collections.abc import Callable
from importlib.resources import files

import anywidget
import traitlets

_PARTS = ("kept.js", "alive.js", "ask.js", "controls.js", "map.js", "component.js")  # one module in the browser
_COLOUR = re.compile(r'"#([0-9a-f]{6})"')


class Component(anywidget.AnyWidget):
    """See ``front``. Costs one small message for each change."""

    _esm = "\n".join(files(__package__).joinpath(name).read_text(encoding="utf-8") for name in _PARTS)
    _css = files(__package__).joinpath("component.css").read_text(encoding="utf-8")
    form = traitlets.Dict().tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)
    map = traitlets.Dict().tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)

    def __init__(self, form: dict, asked: Callable[[dict], None]):
        super().__init__(form=form, shown={"controls": {}, "buttons": [], "sentence": ""})
        self.name = self.model_id  # by which the browser knows this view's output when the notebook is saved
        self._asked = asked
        self.on_msg(self._received)

    def show(self, picture: str | None = None, map: dict | None = None, **shown) -> None:
        """Show an SVG string, a map, and whatever else changed."""
        with self.hold_sync():
            if picture is not None:
                self.picture = _themed(picture)
            if map is not None:
                self.map = map
            self.shown = {**self.shown, **shown}

    def _received(self, _widget, event: dict, _buffers) -> None:
        try:
            self._asked(event)
        finally:
            self.send({"answered": event.get("ticket")})


def _themed(svg: str) -> str:
    """`svg` with every colour as a variable that a dark theme can set, and the colour itself where none is set."""
    return _COLOUR.sub(r'"var(--nl-\1,#\1)"', svg)
