"""Links between lessons come from the map and from the files that are there."""

from pathlib import Path

import pytest

from nanlab.authoring import files, links

LESSON = "02_loss_explosion"


@pytest.fixture
def lessons(page, tmp_path) -> Path:
    """Lesson 02 at two depths, 01 and 03 in the developer track, the start page, an exercise."""
    cells = (page.text("title", "# T"), page.code("run", "1"))
    for name in (
        f"notebooks/developer/{LESSON}", f"notebooks/beginner/{LESSON}", "notebooks/developer/01_two_markers",
        "notebooks/developer/03_padding_row", "notebooks/00_start_here", f"exercises/developer/{LESSON}",
    ):  # fmt: skip
        page(*cells, at=f"{name}.ipynb")
    return tmp_path


def test_a_lesson_gets_both_cells_where_they_belong(lessons):
    links.generate(lessons)
    cells = files.read(lessons / f"notebooks/developer/{LESSON}.ipynb").cells
    assert [cell.id for cell in cells] == ["title", "links", "run", "links-end"]
    assert cells[1].source == (
        f"**Developer** · 20–30 minutes · At another depth: [beginner](../beginner/{LESSON}.ipynb) · "
        "Before: [Two markers](01_two_markers.ipynb) · Next: [The padding row](03_padding_row.ipynb) · "
        "[The map of the course](../00_start_here.ipynb)"
    )
    assert "[The padding row](03_padding_row.ipynb), 0/0" in cells[-1].source
    assert f"[The loss explosion](../../exercises/developer/{LESSON}.ipynb)" in cells[-1].source


def test_a_second_run_changes_nothing_and_check_agrees(lessons):
    assert len(links.generate(lessons)) == 4
    assert links.generate(lessons) == [] == links.generate(lessons, check=True)


def test_check_writes_nothing(lessons):
    path = lessons / f"notebooks/developer/{LESSON}.ipynb"
    before = path.read_bytes()
    assert path in links.generate(lessons, check=True) and path.read_bytes() == before


def test_a_lesson_that_went_away_is_no_longer_linked(lessons):
    links.generate(lessons)
    (lessons / f"notebooks/beginner/{LESSON}.ipynb").unlink()
    assert links.generate(lessons) == [lessons / f"notebooks/developer/{LESSON}.ipynb"]
    assert "beginner" not in (lessons / f"notebooks/developer/{LESSON}.ipynb").read_text()


def test_cells_that_were_moved_are_put_back(lessons):
    links.generate(lessons)
    path = lessons / f"notebooks/developer/{LESSON}.ipynb"
    notebook = files.read(path)
    notebook.cells.reverse()
    notebook.cells.insert(0, notebook.cells.pop())  # the title first again
    files.write(notebook, path)
    links.generate(lessons)
    assert [cell.id for cell in files.read(path).cells] == ["title", "links", "run", "links-end"]
