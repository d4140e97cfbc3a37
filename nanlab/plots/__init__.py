"""One look for every figure of the course: charts and grids, drawn as SVG in labs and as PNG in stored pages."""

from nanlab.plots.chart import Band, Bars, Chart, Limit, Mark, Series
from nanlab.plots.grid import Cell, Grid
from nanlab.plots.runs import bad_mark, compare_runs, format_limit, run_chart
from nanlab.plots.words import number

__all__ = [
    "Band",
    "Bars",
    "Cell",
    "Chart",
    "Grid",
    "Limit",
    "Mark",
    "Series",
    "bad_mark",
    "compare_runs",
    "format_limit",
    "number",
    "run_chart",
]
