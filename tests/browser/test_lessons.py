"""The start page and every lesson, as a learner meets them: open, run all, read, no barrier on the way."""

from pathlib import Path

import pytest

from nanlab.authoring import files

ROOT = Path(__file__).resolve().parents[2]
LESSONS = [path.relative_to(ROOT).as_posix() for path in files.find(ROOT, "notebooks") if files.has_code(path)]

each = pytest.mark.parametrize("path", LESSONS)


@pytest.fixture
def lesson(path: str, open_notebook):
    """The lesson, open; its kernel ends with the test."""
    notebook = open_notebook(path)
    yield notebook
    notebook.close()


@each
def test_a_lesson_runs_in_the_browser(path: str, lesson, jupyter):
    """Before anything runs the stored outputs show, but for the answers to predictions; then every cell runs, all
    outputs show, and only announced errors come."""
    notebook = files.read(jupyter.root / path)
    hidden = {cell.id for cell in files.reveals(notebook)}
    stored = [cell.id for cell in notebook.cells if cell.get("outputs")]
    assert lesson.shown() == [id for id in stored if id not in hidden]
    lesson.run_all()
    assert set(stored) <= set(lesson.shown())
    for cell in lesson.outputs():
        failed = [output["ename"] for output in cell["outputs"] if output["output_type"] == "error"]
        assert not failed or "raises-exception" in cell["tags"], f"cell '{cell['id']}' raised {failed}"
    assert lesson.panel.get_by_text("Error displaying widget").count() == 0
    assert lesson.panel.get_by_text("Loading widget").count() == 0
    assert lesson.accessibility() == []
    assert lesson.errors == []
