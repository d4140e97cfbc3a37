"""Charts draw everything that they are given, twice, and say it in words."""

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from nanlab.plots import (
    Band,
    Bars,
    Cell,
    Chart,
    Grid,
    Limit,
    Mark,
    Note,
    Panels,
    Series,
    compare_runs,
    format_limit,
)
from nanlab.plots.shapes import Path, Text

BLUE = "#0072b2"  # the first curve
NAN, INF = math.nan, math.inf
CHARTS = {
    "explosion": Chart(
        "Loss",
        "step",
        "loss",
        (Series("loss", [900.1, 1.968e5, 1.541e17, INF]), Series("norm", [10.0, 1e3, 1e9, NAN])),
        limits=(Limit(3.4e38, "fp32 max"),),
        marks=(Mark(3, "inf at step 3"),),
        y_log=True,
    ),
    "histogram": Chart(
        "Gradients",
        "log2",
        "count",
        bars=(Bars("all", [1, 5, 2], [-30, -20, -10, 0]),),
        bands=(Band(-INF, -24, "lost"),),
    ),
    "categories": Chart("Cost", "", "ratio", bars=(Bars("MLP", [1.0, 5.2]),), categories=("guard", "anomaly")),
    "linear with -inf": Chart("x", "x", "y", (Series("s", [1.0, -INF, NAN, INF, -2.0]),)),
    "empty": Chart("Nothing", "x", "y", (Series("none", []),)),
    "one point": Chart("One", "x", "y", (Series("one", [3.0]),), y_log=True),
    "many points": Chart("Many", "x", "y", (Series("many", [float(n) for n in range(500)]),)),
    "beyond its range": Chart("Far", "x", "y", (Series("far", [1.0, 50.0]),), y_range=(0.0, 10.0)),
    "grid": Grid("Bits", [[Cell("1", "sign"), Cell("0", "exponent")], [Cell("nan", "bad", 2)]], labels=["a", "b"]),
}


@pytest.fixture(params=CHARTS, scope="module")
def chart(request):
    return CHARTS[request.param]


def test_the_svg_is_well_formed_named_and_on_white_ground(chart):
    root = ET.fromstring(chart.svg())
    assert root.get("role") == "img"
    assert root.get("aria-label") == chart.picture().alt != ""
    assert root[0].get("fill") == "#ffffff"


def test_every_coordinate_of_the_svg_is_a_number_of_tenths_of_pixels(chart):
    shapes = ET.fromstring(chart.svg())[1:]
    places = [shape.get(name) for shape in shapes for name in ("x", "y", "cx", "cy", "points", "d") if shape.get(name)]
    assert places
    assert not [place for place in places if re.search(r"\.\d\d|nan|inf|e", place)]


def test_the_same_chart_gives_the_same_svg_and_png(chart):
    assert chart.svg() == chart.svg()
    assert chart.png() == chart.png()
    assert chart.png().startswith(b"\x89PNG")


def test_the_png_names_no_software(chart):
    assert b"atplotlib" not in chart.png()


def test_a_cell_shows_a_png_and_a_text_and_stores_no_svg(chart):
    data, _ = chart._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    assert chart.title in data["text/plain"]


def points(chart, colour):
    return [p for p in chart.picture().shapes if type(p).__name__ == "Point" and p.colour == colour]


def test_inf_and_nan_are_marked_above_the_axes_and_not_left_out():
    chart = CHARTS["explosion"]
    marks = [p for p in chart.picture().shapes if type(p).__name__ == "Point"]
    cross, triangle = (next(p for p in marks if p.shape == shape) for shape in ("cross", "triangle"))
    drawn = [p for p in points(chart, BLUE) if p.shape == "circle" and p.x > 60]  # the first is the legend's
    assert cross.y < triangle.y < min(p.y for p in drawn)
    assert (triangle.colour, cross.colour) == (BLUE, "#009e73")


def test_no_line_leads_to_what_is_not_finite():
    for chart in (CHARTS["explosion"], CHARTS["linear with -inf"]):
        for line in (s for s in chart.picture().shapes if type(s).__name__ == "Path" and s.colour == BLUE):
            marks = {(p.x, p.y) for p in points(chart, BLUE) if p.shape in ("cross", "triangle", "down")}
            assert not marks & set(line.points)


def test_runs_that_fail_at_one_step_are_told_apart():
    chart = compare_runs({"one": [1.0, NAN], "two": [2.0, NAN], "calm": [3.0, 3.0]}, "Two of three")
    crosses = [p for p in chart.picture().shapes if getattr(p, "shape", "") == "cross"]
    assert len({p.x for p in crosses}) == len({p.colour for p in crosses}) == 2


def test_minus_inf_is_marked_at_the_lower_edge():
    assert any(p.shape == "down" for p in points(CHARTS["linear with -inf"], BLUE))


def test_a_value_beyond_the_view_is_marked_at_its_edge():
    assert [p.shape for p in points(CHARTS["beyond its range"], BLUE)] == ["circle", "triangle"]


def test_a_limit_out_of_view_is_named_all_the_same():
    chart = compare_runs({"calm": [10.0, 9.0]}, "Calm", limits=(format_limit("float64"),))
    assert "fp64 max 1.798e+308, above this view" in chart.svg()


def test_a_limit_is_in_view_once_the_data_comes_near_it():
    chart = compare_runs({"fp16": [900.0, INF]}, "Near", limits=(format_limit("float16"),))
    assert "above this view" not in chart.svg()
    assert "fp16 max 65,504" in chart.svg()


def test_words_say_first_and_last_value_and_where_it_stopped_being_finite():
    text = CHARTS["explosion"].words()
    assert "loss: 4 values, from 900 to inf, not finite from step 3 on" in text
    assert "line: fp32 max" in text and "mark: inf at step 3" in text


def test_words_hold_no_more_digits_than_allowed():
    chart = compare_runs({"a": [876.543, 0.123456]}, "t", digits=2)
    assert "from 880 to 0.12" in chart.words()
    assert "from finite to finite" in compare_runs({"a": [876.543, 0.12]}, "t", digits=0).words()


def test_series_differ_in_more_than_colour():
    chart = compare_runs({name: [1.0, 2.0] for name in "abcd"}, "t")
    paths = [s for s in chart.picture().shapes if type(s).__name__ == "Path" and s.width == 2.0]
    assert len({s.dash for s in paths}) == 4
    assert len({s.colour for s in paths}) == 4


def test_text_is_escaped():
    ET.fromstring(Chart("a < b & $c$", "x", 'say "y"', (Series("<s>", [1.0]),)).svg())


def test_a_note_stands_beside_its_point_and_arrows_point_along_the_line():
    walk = Series("walk", [4.0, 1.0, 0.0], [-2.0, 1.0, 0.0], arrows=True)
    plain = Chart("t", "x", "y", (replace(walk, arrows=False),)).picture()
    shown = Chart("t", "x", "y", (walk,), notes=(Note(-2.0, 4.0, "start"),)).picture()
    assert any(isinstance(shape, Text) and shape.text == "start" for shape in shown.shapes)
    heads = [shape for shape in shown.shapes if isinstance(shape, Path) and shape not in plain.shapes]
    assert [len(head.points) for head in heads] == [3, 3]
    assert heads[0].points[1][0] > heads[0].points[0][0] and heads[1].points[1][0] < heads[1].points[0][0]


def test_panels_set_small_charts_in_rows_and_say_them_all():
    charts = [Chart(f"chart {n}", "x", "y", (Series("s", [1.0, 2.0]),), width=200, height=150) for n in range(3)]
    panels = Panels("three", charts)
    picture = panels.picture()
    titles = {s.text: (s.x, s.y) for s in picture.shapes if isinstance(s, Text) and s.text.startswith("chart")}
    assert titles["chart 1"][0] - titles["chart 0"][0] == 200 and titles["chart 2"][1] - titles["chart 0"][1] == 150
    assert (picture.width, picture.height) == (400, 334)
    assert all(f"chart {n}" in panels.words() for n in range(3))
