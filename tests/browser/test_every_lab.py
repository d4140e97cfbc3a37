"""Every control of every lab, by keyboard alone, in a real JupyterLab. A new lab is tested by being exported."""

from importlib import import_module
from pkgutil import iter_modules

import nbformat
import pytest
from playwright.sync_api import Locator, expect

from nanlab import lessons
from nanlab.course.lab import Choice, Lab

MODULES = [import_module(f"nanlab.lessons.{module.name}") for module in iter_modules(lessons.__path__)]
EXPORTED = [getattr(module, name) for module in MODULES for name in module.__all__]
LABS = [kind for kind in EXPORTED if isinstance(kind, type) and issubclass(kind, Lab)]
CONTROLS = [(kind, control) for kind in LABS for control in kind.controls]

FIRST = {("PaddingLab", "scale"): ("eps", 0.1)}  # without an epsilon a scaled row is the same at any scale

each_control = pytest.mark.parametrize(
    ("kind", "control"), CONTROLS, ids=[f"{kind.__name__}-{control.name}" for kind, control in CONTROLS]
)


@pytest.fixture(scope="module")
def shown(jupyter, open_notebook):
    """A notebook with each lab in a cell of its own, run from top to bottom."""
    sources = {kind.__name__: f"from {kind.__module__} import {kind.__name__}\n{kind.__name__}()" for kind in LABS}
    cells = [nbformat.v4.new_code_cell(source, id=name) for name, source in sources.items()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, jupyter.root / "labs.ipynb")
    opened = open_notebook("labs.ipynb")
    opened.run_all()
    return opened


@each_control
def test_a_control_changes_what_the_lab_shows(kind, control, shown):
    """One of its other values must change the picture, the sentence or the table under it."""
    lab = shown.output(kind.__name__)
    first = FIRST.get((kind.__name__, control.name))
    if first:
        _type(shown.page, _field(lab, kind, first[0]), first[1])
        shown.page.wait_for_timeout(400)
    seen = {_looks(lab)}
    for change in _choices(shown, lab, control) if isinstance(control, Choice) else _numbers(shown, lab, control):
        change()
        shown.page.wait_for_timeout(400)
        seen.add(_looks(lab))
    if first:
        _type(shown.page, _field(lab, kind, first[0]), next(c.value for c in kind.controls if c.name == first[0]))
    assert len(seen) > 1, f"nothing that {control.label!r} offers changes the lab"


def _field(lab: Locator, kind: type[Lab], name: str) -> Locator:
    label = next(control.label for control in kind.controls if control.name == name)
    return lab.get_by_role("textbox", name=label, exact=True)


def _looks(lab: Locator) -> str:
    return "".join(part.inner_html() for part in lab.locator("svg[role=img], .nanlab-sentence, table").all())


def _choices(shown, lab: Locator, control: Choice):
    """Each option by keyboard, ending where the lab began, for the control that comes next."""
    texts = [text for text, _ in control.pairs]
    start = [value for _, value in control.pairs].index(control.value)
    places = [*range(len(texts)), start]
    return [lambda place=place: _choose(shown.page, lab, control, texts, place) for place in places]


def _choose(page, lab: Locator, control: Choice, texts: list[str], place: int) -> None:
    if control.about()["kind"] == "select":
        chosen = lab.get_by_role("combobox", name=control.label, exact=True)
        chosen.focus()
        at = chosen.evaluate("list => list.selectedIndex")
    else:
        group = lab.get_by_role("group", name=control.label, exact=True).get_by_role("radio")
        at = next(n for n in range(len(texts)) if group.nth(n).is_checked())
        group.nth(at).focus()
    for _ in range(abs(place - at)):
        page.keyboard.press("ArrowDown" if place > at else "ArrowUp")


def _numbers(shown, lab: Locator, control):
    field = lab.get_by_role("textbox", name=control.label, exact=True)
    values = [control.step(control.value, up=True), control.step(control.value, up=False), control.value]
    return [lambda value=value: _type(shown.page, field, value) for value in values]


def _type(page, field: Locator, value: float) -> None:
    field.focus()
    page.keyboard.press("Control+A")
    page.keyboard.type(f"{value:g}")
    expect(field).to_have_value(f"{value:g}")
