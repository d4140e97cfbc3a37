"""How a figure shows itself in a notebook: a PNG to see, and a text that says the same and is what nbval compares."""

import base64
from abc import ABC, abstractmethod

from nanlab.plots.shapes import Picture


class Figure(ABC):
    """A description that can be drawn. No SVG is stored: nbval compares SVG, and coordinates made from trained numbers
    differ between processors."""

    title: str

    @abstractmethod
    def picture(self) -> Picture:
        """The figure in pixels."""

    @abstractmethod
    def words(self) -> str:
        """The figure as a few lines of text, the same on every processor."""

    def svg(self) -> str:
        """The figure as an SVG string, for live views."""
        from nanlab.plots.svg import svg

        return svg(self.picture())

    def png(self) -> bytes:
        """The figure as PNG bytes. Loads matplotlib."""
        from nanlab.plots.png import png

        return png(self.picture())

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        return bundle(self.picture(), self.words())


def bundle(picture: Picture, words: str) -> tuple[dict, dict]:
    """`picture` as a PNG, and `words`, with the metadata that name the picture: nbconvert reads one, VS Code the
    other. Loads matplotlib."""
    from nanlab.plots.png import png

    data = {"image/png": base64.b64encode(png(picture)).decode(), "text/plain": words}
    size = {"width": picture.width, "height": picture.height}
    return data, {"image/png": {**size, "alt": picture.alt}, "vscode_altText": picture.alt}
