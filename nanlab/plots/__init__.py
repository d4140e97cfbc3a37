"""One look for every figure of the course: charts and grids, drawn as SVG in labs and as PNG in stored pages."""

from nanlab.plots.chart import Chart
from nanlab.plots.description import Band, Bars, Limit, Mark, Note, Series
from nanlab.plots.grid import Cell, Grid
from nanlab.plots.panels import Panels
from nanlab.plots.runs import compare_runs, format_limit
from nanlab.plots.words import number

__all__ = [
    "Band",
    "Bars",
    "Cell",
    "Chart",
    "Grid",
    "Limit",
    "Mark",
    "Note",
    "Panels",
    "Series",
    "compare_runs",
    "format_limit",
    "number",
]
