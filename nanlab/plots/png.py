"""The same picture as a PNG, drawn by matplotlib: what a notebook stores for readers who have no kernel.

The bytes are the same for the same matplotlib version; nbval does not compare them.
"""

import io
from collections.abc import Callable

from nanlab.plots.look import EDGE, GROUND
from nanlab.plots.shapes import Path, Picture, Point, Rect, Shape, Text
from nanlab.plots.svg import hatch_lines

_SHARP = 1.5  # pixels drawn for each pixel shown
_POINT = 0.75  # points of type for each pixel at 96 dots an inch
_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^", "down": "v", "cross": "x"}


def png(picture: Picture) -> bytes:
    """`picture` as PNG bytes, 1.5 pixels for each of its own. Loads matplotlib (0.3 s, once). Leaves pyplot alone."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError("drawing needs matplotlib: pip install 'nanlab[course]'") from missing
    figure = Figure(figsize=(picture.width / 96, picture.height / 96), dpi=96 * _SHARP, facecolor=GROUND)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.set_axis_off()
    _rect(axes, Rect(0, 0, picture.width, picture.height, GROUND, EDGE), 1)
    for order, shape in enumerate(picture.shapes, start=2):
        _DRAW[type(shape)](axes, shape, order)
    return _packed(figure)


def _packed(figure) -> bytes:
    """The drawn figure in at most 128 colours: the same to the eye, and a quarter of the bytes in a notebook."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image  # matplotlib brings it

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    width, height = map(round, canvas.get_width_height(physical=True))
    image = Image.frombytes("RGBA", (width, height), canvas.buffer_rgba().tobytes()).convert("RGB")
    buffer = io.BytesIO()
    image.quantize(128, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _rect(axes, shape: Rect, order: int) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    face = to_rgba(shape.fill, shape.opacity)
    edge = to_rgba(shape.edge) if shape.edge else "none"
    axes.add_patch(Rectangle((shape.x, shape.y), shape.width, shape.height, fc=face, ec=edge, lw=_POINT, zorder=order))
    for start, end in hatch_lines(shape) if shape.hatch else ():
        _path(axes, Path((start, end), shape.edge or shape.fill), order)


def _path(axes, shape: Path, order: int) -> None:
    xs, ys = zip(*shape.points, strict=True)
    style = (0, tuple(length / shape.width for length in shape.dash)) if shape.dash else "-"
    axes.plot(xs, ys, color=shape.colour, lw=shape.width * _POINT, ls=style, zorder=order, solid_joinstyle="round")


def _point(axes, shape: Point, order: int) -> None:
    size = shape.size * (1.7 if shape.shape == "diamond" else 2.0) * _POINT
    marker = _MARKERS[shape.shape]
    edge = 2.5 * _POINT if shape.shape == "cross" else 0
    axes.plot([shape.x], [shape.y], marker, ms=size, color=shape.colour, mew=edge, zorder=order, clip_on=False)


def _text(axes, shape: Text, order: int) -> None:
    from matplotlib.patheffects import withStroke

    anchor = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
    text = axes.text(
        shape.x,
        shape.y,
        shape.text,
        parse_math=False,
        fontsize=shape.size * _POINT * 0.94,  # matplotlib's DejaVu Sans runs wider than the browser's sans-serif
        color=shape.colour,
        ha=anchor,
        va="baseline",
        weight="bold" if shape.bold else "normal",
        family="DejaVu Sans Mono" if shape.mono else "DejaVu Sans",
        rotation=90 if shape.upright else 0,
        rotation_mode="anchor",
        zorder=order,
    )
    if shape.halo:
        text.set_path_effects([withStroke(linewidth=3, foreground=GROUND)])


_DRAW: dict[type[Shape], Callable] = {Rect: _rect, Path: _path, Point: _point, Text: _text}
