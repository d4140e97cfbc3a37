"""A picture as an SVG string: the fast way, for labs (27 ms from key press to pixels where matplotlib takes 125).

Tenths of pixels at most, no ids, no dependency.
"""

from collections.abc import Callable
from html import escape

from nanlab.plots.look import EDGE, GROUND
from nanlab.plots.shapes import Path, Picture, Point, Rect, Shape, Text

_FONT = "system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
_MONO = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def svg(picture: Picture) -> str:
    """`picture` as one ``<svg role="img">`` with its description as the accessible name. Cost: under a millisecond."""
    width, height = picture.width, picture.height
    body = "".join(_DRAW[type(shape)](shape) for shape in picture.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(picture.alt)}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" style="max-width:100%;height:auto;display:block" '
        f'font-family="{_FONT}">'
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="4" fill="{GROUND}" stroke="{EDGE}"/>'
        f"{body}</svg>"
    )


def _rect(shape: Rect) -> str:
    edge = f' stroke="{shape.edge}"' if shape.edge else ""
    opacity = f' fill-opacity="{shape.opacity:g}"' if shape.opacity < 1 else ""
    box = f'x="{shape.x}" y="{shape.y}" width="{shape.width}" height="{shape.height}"'
    return f'<rect {box} fill="{shape.fill}"{opacity}{edge}/>{_hatch(shape) if shape.hatch else ""}'


def _hatch(shape: Rect) -> str:
    """Slanted strokes, so that overlaid bars differ in more than colour."""
    steps = hatch_lines(shape)
    lines = "".join(f"M{x0} {y0}L{x1} {y1}" for (x0, y0), (x1, y1) in steps)
    return f'<path d="{lines}" stroke="{shape.edge or shape.fill}" stroke-width="1" fill="none"/>' if lines else ""


def hatch_lines(shape: Rect, gap: int = 6) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The slanted strokes that fill `shape`, `gap` pixels apart, clipped to it."""
    lines = []
    for offset in range(gap, shape.width + shape.height, gap):
        x0, y0 = max(0, offset - shape.height), min(shape.height, offset)
        x1, y1 = min(shape.width, offset), max(0, offset - shape.width)
        lines.append(((shape.x + x0, shape.y + y0), (shape.x + x1, shape.y + y1)))
    return lines


def _path(shape: Path) -> str:
    points = " ".join(f"{x:g},{y:g}" for x, y in shape.points)
    dash = f' stroke-dasharray="{" ".join(map(str, shape.dash))}"' if shape.dash else ""
    return (
        f'<polyline points="{points}" fill="none" stroke="{shape.colour}" stroke-width="{shape.width:g}"'
        f'{dash} stroke-linejoin="round"/>'
    )


def _point(shape: Point) -> str:
    x, y, s, colour = shape.x, shape.y, shape.size, shape.colour
    if shape.shape == "circle":
        return f'<circle cx="{x:g}" cy="{y:g}" r="{s}" fill="{colour}"/>'
    if shape.shape == "cross":
        strokes = f"M{x - s:g} {y - s:g}l{2 * s} {2 * s}M{x - s:g} {y + s:g}l{2 * s} {-2 * s}"
        return f'<path d="{strokes}" stroke="{colour}" stroke-width="2.5" fill="none"/>'
    corners = {
        "square": ((-s, -s), (s, -s), (s, s), (-s, s)),
        "diamond": ((0, -s - 1), (s + 1, 0), (0, s + 1), (-s - 1, 0)),
        "triangle": ((0, -s - 1), (s + 1, s), (-s - 1, s)),
        "down": ((0, s + 1), (s + 1, -s), (-s - 1, -s)),
    }
    points = " ".join(f"{x + dx:g},{y + dy:g}" for dx, dy in corners[shape.shape])
    return f'<polygon points="{points}" fill="{colour}"/>'


def _text(shape: Text) -> str:
    style = f' text-anchor="{shape.anchor}"' if shape.anchor != "start" else ""
    style += ' font-weight="600"' if shape.bold else ""
    style += f' font-family="{_MONO}"' if shape.mono else ""
    style += f' stroke="{GROUND}" stroke-width="4" paint-order="stroke" stroke-linejoin="round"' if shape.halo else ""
    style += f' transform="rotate(-90 {shape.x:g} {shape.y:g})"' if shape.upright else ""
    return (
        f'<text x="{shape.x:g}" y="{shape.y:g}" font-size="{shape.size}" fill="{shape.colour}"{style}>'
        f"{escape(shape.text)}</text>"
    )


_DRAW: dict[type[Shape], Callable] = {Rect: _rect, Path: _path, Point: _point, Text: _text}
