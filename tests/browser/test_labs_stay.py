"""What becomes of every lab and question when the kernel goes, and what a key typed in one does to the notebook."""

import json
import string
from importlib import import_module
from pkgutil import iter_modules

import nbformat
import pytest
from playwright.sync_api import expect

from nanlab import lessons
from nanlab.course import TOPICS, questions
from nanlab.course.lab import Lab

MODULES = [import_module(f"nanlab.lessons.{module.name}") for module in iter_modules(lessons.__path__)]
EXPORTED = [getattr(module, name) for module in MODULES for name in getattr(module, "__all__", ())]
LABS = [kind for kind in EXPORTED if isinstance(kind, type) and issubclass(kind, Lab)]
QUESTIONS = [question for topic in TOPICS for question in questions.of(topic)]
ASKED = [next(q for q in QUESTIONS if q.kind == kind) for kind in sorted({q.kind for q in QUESTIONS})]
SOURCES = {kind.__name__: f"from {kind.__module__} import {kind.__name__}\n{kind.__name__}()" for kind in LABS}
SOURCES |= {f"ask-{q.kind}": f"from nanlab import predict\npredict({q.id!r})" for q in ASKED}
SOURCES |= {
    "LogLab": "from nanlab.lessons.read_the_log import LogLab\nLogLab()",
    "chooser": "from nanlab.lessons.start_here import choose_track\nchoose_track()",
    "map": "from nanlab.lessons.start_here import course_map\ncourse_map()",
}
VIEW = "application/vnd.jupyter.widget-view+json"
SAVE = "async () => { await window.jupyterapp.commands.execute('docmanager:save') }"
RESTART = "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.restartKernel() }"
STATE = """() => { const cells = window.jupyterapp.shell.currentWidget.content.widgets;
  return JSON.stringify(cells.map(c => [c.model.id, c.model.type, c.model.sharedModel.source])); }"""

each = pytest.mark.parametrize("name", SOURCES)


@pytest.fixture(scope="module")
def shown(jupyter, open_notebook):
    """A notebook with every lab and question in a cell of its own, run from top to bottom."""
    cells = [nbformat.v4.new_code_cell(source, id=name) for name, source in SOURCES.items()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, jupyter.root / "stay.ipynb")
    opened = open_notebook("stay.ipynb", height=720)
    opened.run_all()
    expect(opened.panel.locator(".nanlab")).to_have_count(len(SOURCES))
    return opened


@each
def test_no_letter_typed_at_any_control_changes_the_notebook(name, shown):
    """Every control of the view takes every letter, as key and with Shift; cells and their kinds stay as they are."""
    before = shown.page.evaluate(STATE)
    kinds = ("button", "input", "select", "textarea")
    controls = shown.output(name).locator(", ".join([*(f"{kind}:visible" for kind in kinds), ".nanlab-map"]))
    assert controls.count() or name == "map"
    for control in controls.all():
        control.focus()
        for letter in string.ascii_lowercase + "0":
            shown.page.keyboard.press(letter)
        shown.page.keyboard.press("Shift+M")
        for key in ("ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Escape"):
            shown.page.keyboard.press(key)
        assert control.evaluate("element => element.contains(document.activeElement)"), "a key moved the focus away"
    assert shown.page.evaluate(STATE) == before


def test_ctrl_s_saves_from_within_a_lab(shown, jupyter):
    shown.output("SheetLab").get_by_role("textbox").first.focus()
    before = (jupyter.root / "stay.ipynb").stat().st_mtime_ns
    shown.page.keyboard.press("Control+s")
    shown.page.wait_for_timeout(2000)
    assert (jupyter.root / "stay.ipynb").stat().st_mtime_ns > before


@each
def test_after_a_save_the_file_holds_a_picture_and_no_dead_view(name, shown, jupyter):
    shown.page.wait_for_timeout(500)
    shown.page.evaluate(SAVE)
    saved = json.loads((jupyter.root / "stay.ipynb").read_text())
    outputs = next(cell for cell in saved["cells"] if cell["id"] == name)["outputs"]
    data, metadata = outputs[0]["data"], outputs[0]["metadata"]
    assert VIEW not in data
    assert "text/plain" in data and ("text/html" in data or "image/png" in data)
    assert "image/png" not in data or metadata["image/png"]["alt"]
    assert "widgets" not in saved["metadata"]


def test_the_text_that_nbval_compares_is_that_of_the_first_display(shown, jupyter):
    """A learner who moved a control and saved has a notebook that still passes."""
    field = shown.output("ExplosionLab").get_by_role("textbox", name="learning rate", exact=True)
    field.fill("0.001")
    expect(shown.output("ExplosionLab").locator(".nanlab-sentence")).to_contain_text("Every value stays finite")
    shown.page.wait_for_timeout(500)
    shown.page.evaluate(SAVE)
    saved = json.loads((jupyter.root / "stay.ipynb").read_text())
    output = next(cell for cell in saved["cells"] if cell["id"] == "ExplosionLab")["outputs"][0]
    assert "".join(output["data"]["text/plain"]).startswith("lr=0.1, scale=10, float32")
    assert "Every value stays finite" in output["metadata"]["image/png"]["alt"]


def test_reopened_without_its_kernel_every_picture_and_question_is_seen(shown, jupyter, open_notebook):
    shown.page.evaluate(SAVE)
    shown.page.evaluate("async () => { await window.jupyterapp.shell.currentWidget.sessionContext.shutdown() }")
    expect(shown.output("ExplosionLab").locator(".nanlab-sentence")).to_contain_text("Run this cell again")
    again = open_notebook("stay.ipynb")
    assert again.shown() == list(SOURCES)
    assert again.panel.get_by_text("Error displaying widget").count() == 0
    for kind in LABS:
        expect(again.output(kind.__name__).locator("img")).to_be_visible()
    again.run_all()
    expect(again.panel.locator(".nanlab")).to_have_count(len(SOURCES))
    again.page.evaluate(RESTART)
    for name in SOURCES:
        expect(again.output(name).locator(".nanlab-sentence")).to_contain_text("Run this cell again")
        controls = again.output(name).locator(".nanlab-side")
        assert controls.evaluate("side => side.disabled")
    again.close()
