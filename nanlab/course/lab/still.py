"""A lab's picture with its sentence under it: what a notebook stores for readers who have no kernel."""

import textwrap

from nanlab.plots.look import text_width
from nanlab.plots.shapes import Picture, Text

_SIZE, _LINE, _EDGE = 13, 19, 16  # pixels


def with_sentence(picture: Picture, sentence: str) -> Picture:
    """A taller picture that ends in `sentence`; its alternative text is the picture's own."""
    lines = textwrap.wrap(sentence, int((picture.width - 2 * _EDGE) / text_width("m", _SIZE)))
    taller = Picture(picture.width, picture.height + _LINE * len(lines) + _EDGE, picture.alt, list(picture.shapes))
    for n, line in enumerate(lines):
        taller.add(Text(_EDGE, picture.height + 12 + _LINE * n, line, _SIZE))
    return taller
