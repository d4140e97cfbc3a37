"""A picture as an SVG string: the fast way, for labs (27 ms from key press to pixels where matplotlib takes 125).

Whole pixels, no ids, no dependency: the same picture gives the same string everywhere.
"""

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
    points = " ".join(f"{x},{y}" for x, y in shape.points)
    dash = f' stroke-dasharray="{" ".join(map(str, shape.dash))}"' if shape.dash else ""
    return (
        f'<polyline points="{points}" fill="none" stroke="{shape.colour}" stroke-width="{shape.width:g}"'
        f'{dash} stroke-linejoin="round"/>'
    )


def _point(shape: Point) -> str:
    x, y, s, colour = shape.x, shape.y, shape.size, shape.colour
    if shape.shape == "circle":
        return f'<circle cx="{x}" cy="{y}" r="{s}" fill="{colour}"/>'
    if shape.shape == "cross":
        return (
            f'<path d="M{x - s} {y - s}L{x + s} {y + s}M{x - s} {y + s}L{x + s} {y - s}" stroke="{colour}" '
            f'stroke-width="2.5" fill="none"/>'
        )
    corners = {
        "square": f"{x - s},{y - s} {x + s},{y - s} {x + s},{y + s} {x - s},{y + s}",
        "diamond": f"{x},{y - s - 1} {x + s + 1},{y} {x},{y + s + 1} {x - s - 1},{y}",
        "triangle": f"{x},{y - s - 1} {x + s + 1},{y + s} {x - s - 1},{y + s}",
        "down": f"{x},{y + s + 1} {x + s + 1},{y - s} {x - s - 1},{y - s}",
    }
    return f'<polygon points="{corners[shape.shape]}" fill="{colour}"/>'


def _text(shape: Text) -> str:
    style = f' text-anchor="{shape.anchor}"' if shape.anchor != "start" else ""
    style += ' font-weight="600"' if shape.bold else ""
    style += f' font-family="{_MONO}"' if shape.mono else ""
    style += f' stroke="{GROUND}" stroke-width="4" paint-order="stroke" stroke-linejoin="round"' if shape.halo else ""
    style += f' transform="rotate(-90 {shape.x} {shape.y})"' if shape.upright else ""
    return (
        f'<text x="{shape.x}" y="{shape.y}" font-size="{shape.size}" fill="{shape.colour}"{style}>'
        f"{escape(shape.text)}</text>"
    )


_DRAW: dict[type[Shape], object] = {Rect: _rect, Path: _path, Point: _point, Text: _text}
