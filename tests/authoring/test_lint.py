"""Each rule of the style speaks when it is broken, and not when it is kept."""

from pathlib import Path

import pytest
from nbformat import v4

from nanlab.authoring import files
from nanlab.authoring.lint import lint
from nanlab.authoring.lint.outputs import too_long
from nanlab.authoring.lint.text import count_words

PROSE = " ".join(["word"] * 40)


@pytest.fixture
def lesson(page):
    """Writes a lesson that keeps the style, with one cell put in the place of another of the same id."""

    def write(*changed, at: str = "notebooks/developer/02_loss_explosion.ipynb", without: str = "") -> Path:
        cells = [
            page.text("title", "# The title"),
            page.text("links", "links"),
            page.text("why", PROSE),
            page.code("imports", "import torch\ntorch.manual_seed(0)", execution_count=1),
            page.text("what", PROSE),
            page.code("run", "x = torch.rand(3)", execution_count=2),
            page.code("look", "x.shape", execution_count=3),
            page.text("remember", f"## What to remember\n{PROSE}"),
            page.text("sources", f"## Sources\n{PROSE}"),
            page.text("links-end", "links"),
        ]
        places = {cell.id: number for number, cell in enumerate(cells)}
        for cell in changed:
            cells[places[cell.id]] = cell
        return page(*(cell for cell in cells if cell.id != without), at=at)

    return write


def errors(path: Path) -> list[str]:
    return [str(finding) for finding in lint(path) if not finding.note]


def test_a_lesson_that_keeps_the_style_gets_no_error(lesson):
    assert errors(lesson()) == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import sys\nsys.path.append('..')", "edits sys.path"),
        ("!pip install torch", "installs something"),
        ("%pip install torch", "installs something"),
        ("from math import *", "star import"),
        ("import warnings\nwarnings.filterwarnings('ignore')", "hides warnings"),
        ("import urllib.request", "uses the network"),
        ("open('/home/me/data.txt')", "an absolute path"),
        (r"open('C:\data.txt')", "an absolute path"),
        ("from ipywidgets import interact\ninteract(f, x=1)", "nbval reads their content"),
        ("import ipywidgets as w\nw.Output()", "nbval reads their content"),
        ("plt.plot(x);", "ends with ';'"),
        ("import time\ntime.perf_counter()", "times something and is not tagged unrun"),
        ("\n".join(f"x{i} = {i}" for i in range(21)), "21 lines of code; 20 at most"),
        ("", "an empty code cell"),
    ],
)
def test_code_that_would_break_elsewhere_is_found(lesson, page, source, said):
    found = errors(lesson(page.code("run", source, execution_count=2)))
    assert len(found) >= 1 and said in found[0] and "run: " in found[0]


def test_a_cell_that_times_something_may_when_it_is_stored_unrun(lesson, page):
    timed, following = (
        page.code("run", "import time\ntime.perf_counter()", "unrun"),
        page.code("look", "1", execution_count=2),
    )
    assert errors(lesson(timed, following)) == []


def test_long_cells_are_found_by_their_median(lesson, page):
    long = page.code("imports", "import torch\ntorch.manual_seed(0)\na = 1\nb = 2\nc = 3\nd = 4", execution_count=1)
    other = page.code("run", "a = 1\nb = 2\nc = 3\nd = 4", execution_count=2)
    assert any("median code cell has 4 lines" in error for error in errors(lesson(long, other)))


def test_a_draw_before_the_seed_is_found(lesson, page):
    late = page.code("imports", "import torch", execution_count=1)
    assert any("before any manual_seed" in error for error in errors(lesson(late)))


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (v4.new_output("stream", name="stdout", text="loss 900.123456"), "900.123456"),
        (v4.new_output("display_data", {"text/html": "<td>0.1234567</td>"}), "0.1234567"),
        (v4.new_output("stream", name="stdout", text="<Generator at 0x7f12ab34cd>"), "memory address"),
        (v4.new_output("stream", name="stdout", text="saved /tmp/nan/model.pt"), "absolute path"),
        (v4.new_output("stream", name="stderr", text="UserWarning: careful"), "stderr"),
        (v4.new_output("display_data", {"application/javascript": "1"}), "JavaScript"),
        (v4.new_output("error", ename="ValueError", evalue="no", traceback=[]), "not tagged raises-exception"),
    ],
)
def test_outputs_that_differ_from_run_to_run_are_found(lesson, page, output, said):
    found = errors(lesson(page.code("run", "x = torch.rand(3)", execution_count=2, outputs=[output])))
    assert len(found) == 1 and said in found[0]


def test_exact_numbers_may_be_long_when_the_cell_says_so(lesson, page):
    output = v4.new_output("stream", name="stdout", text="3.4028234e+38")
    assert errors(lesson(page.code("run", "x = 1", "exact", execution_count=2, outputs=[output]))) == []


@pytest.mark.parametrize(
    ("number", "long"),
    [("900.1", False), ("1.968e+05", False), ("900.1000000", False), ("0.000012345", False), ("900.1234", True),
     ("3.40282e+38", True)],
)  # fmt: skip
def test_significant_digits_are_counted(number, long):
    assert too_long(number) is long


def test_an_announced_error_that_did_not_come_is_found(lesson, page):
    cell = page.code("run", "1 / 1", "raises-exception", execution_count=2)
    assert any("stores no error" in error for error in errors(lesson(cell)))


def test_a_notebook_run_out_of_order_is_found(lesson, page):
    cell = page.code("run", "x = 1", execution_count=7)
    assert any("was run as 7, not 2" in error for error in errors(lesson(cell)))


def test_a_widgets_view_is_found(lesson):
    path = lesson()
    notebook = files.read(path)
    notebook.cells[5].outputs = [v4.new_output("display_data", {files.WIDGET_VIEW: {}})]
    path.write_text(__import__("nbformat").writes(notebook))
    assert any("stores a widget's view" in error for error in errors(path))


@pytest.mark.parametrize("id_", ["a1b2c3d4", "Run", "run_it", "12"])
def test_ids_that_name_nothing_are_found(page, id_):
    path = page(page.text("title", "# T"), page.code(id_, "x = 1"))
    assert any("a cell's id is a few words" in error for error in errors(path))


@pytest.mark.parametrize("id_", ["run", "first-bad-step", "fp16-max", "facade"])
def test_ids_that_are_words_are_kept(page, id_):
    assert errors(page(page.text("title", "# T"), page.code(id_, "x = 1"))) == []


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("remember", "'What to remember'"),
        ("sources", "'Sources'"),
        ("links", "author links"),
        ("links-end", "author links"),
    ],
)
def test_a_missing_section_is_found(lesson, cell, said):
    assert any(said in error for error in errors(lesson(without=cell)))


def test_prose_that_is_too_long_is_found(lesson, page):
    path = lesson(page.text("why", " ".join(["word"] * 121)))
    assert any("why: 121 words; 120 at most" in error for error in errors(path))


def test_a_picture_without_words_is_found(lesson, page):
    assert any("text alternative" in e for e in errors(lesson(page.text("why", f"![](a.png) {PROSE}"))))
    assert errors(lesson(page.text("why", f"![the curve](a.png) {PROSE}"))) == []


def test_code_formulas_and_addresses_are_no_prose():
    assert count_words("One [two](https://example.org/three/four) `five`\n```python\nsix = 6\n```\n$$a b c$$\n<b>") == 3


def test_the_start_page_and_exercises_need_no_sections(page):
    cells = (page.text("title", "# T"), page.code("run", "import torch", execution_count=1))
    assert errors(page(*cells, at="notebooks/00_start_here.ipynb")) == []
    assert errors(page(cells[0], page.code("run", "x = 1"), at="exercises/developer/02_loss_explosion.ipynb")) == []


def test_an_answer_in_sight_of_its_question_is_an_error(lesson):
    path = lesson(v4.new_code_cell("nanlab.predict('02.third_loss')", id="run", execution_count=2))
    assert errors(path) == []
    path.write_text(path.read_text().replace('"outputs_hidden": true', '"outputs_hidden": false'))
    assert any("look: the answer of the question above is in sight" in error for error in errors(path))


def test_text_right_under_a_question_is_noted(lesson):
    path = lesson(v4.new_code_cell("nanlab.predict('02.third_loss')", id="imports", execution_count=1))
    assert any("text stands right under the question" in str(finding) for finding in lint(path))


def test_a_lesson_longer_than_it_promises_is_noted_and_an_appendix_does_not_count(lesson):
    long = page_of_words(30 * 200)
    path = lesson(v4.new_markdown_cell(long, id="what"))
    assert any("takes 3" in str(finding) and "promises 30" in str(finding) for finding in lint(path))
    path = lesson(v4.new_markdown_cell(f"## Appendix: more\n{long}", id="what"))
    assert not any("promises" in str(finding) for finding in lint(path))


def page_of_words(count: int) -> str:
    return " ".join(["word"] * count)


def test_a_lesson_that_is_not_there_is_not_named(lesson):
    path = lesson(v4.new_markdown_cell(f"See lesson 02 and lesson 13. {PROSE}", id="what"))
    assert [f.text for f in lint(path) if "names lesson" in f.text] == ["names lesson 13, which is not there"]
