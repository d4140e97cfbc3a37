"""Storing runs a notebook and keeps nothing that differs from run to run."""

import pytest

from nanlab.authoring import files
from nanlab.authoring.store import StoreError, store


def _outputs(path) -> dict:
    return {cell.id: cell.outputs for cell in files.read(path).cells if cell.cell_type == "code"}


def test_outputs_and_counts_are_stored(page):
    path = page(page.text("title", "# T"), page.code("one", "print(1)"), page.code("two", "40 + 2"))
    assert store(path)
    cells = files.read(path).cells
    assert [cell.execution_count for cell in cells[1:]] == [1, 2]
    assert _outputs(path)["one"][0].text == "1\n" and _outputs(path)["two"][0].data["text/plain"] == "42"


def test_storing_twice_gives_the_same_bytes(page):
    path = page(
        page.code("draw", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"),
        page.code("widget", "import ipywidgets\nipywidgets.IntText(3)"),
        page.code("streams", "import sys\nfor i in range(50): print(i, flush=True)"),
        page.code("fails", "1 / 0", "raises-exception"),
    )
    store(path)
    before = path.read_bytes()
    assert not store(path) and path.read_bytes() == before


def test_no_widget_view_and_no_trace_of_the_run_is_stored(page):
    path = page(page.code("widget", "import ipywidgets\nipywidgets.IntText(3)"))
    store(path)
    raw = path.read_text()
    assert "widget-view" not in raw and 'execution"' not in raw and "widget-state" not in raw
    assert _outputs(path)["widget"][0].data == {"text/plain": "IntText(value=3)"}


def test_a_cell_tagged_unrun_is_not_run_and_is_stored_empty(page):
    path = page(page.code("timed", "raise SystemError", "unrun"), page.code("next", "print(2)"))
    store(path)
    timed, following = files.read(path).cells
    assert timed.outputs == [] and timed.execution_count is None and following.execution_count == 1


def test_an_error_names_cell_line_and_error_and_leaves_the_file(page):
    path = page(page.code("fine", "print(1)"), page.code("broken", "x = 1\nx / 0"))
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"page\.ipynb: cell 'broken', line 2: ZeroDivisionError: division by zero"):
        store(path)
    assert path.read_bytes() == before


def test_an_announced_error_is_stored_without_the_librarys_frames(page):
    path = page(page.code("fails", "import torch\ntorch.ones(2) @ torch.ones(3)", "raises-exception"))
    store(path)
    error = _outputs(path)["fails"][0]
    assert error.ename == "RuntimeError" and "site-packages" not in "".join(error.traceback)
    assert error.traceback[0].startswith("Cell In")


def test_a_notebook_runs_in_its_own_folder(page, tmp_path):
    path = page(page.code("where", "import pathlib; print(pathlib.Path('beside').exists())"), at="deep/page.ipynb")
    (path.parent / "beside").touch()
    store(path)
    assert _outputs(path)["where"][0].text == "True\n"


def test_a_notebook_that_does_not_end_is_stopped(page):
    path = page(page.code("sleeps", "import time\ntime.sleep(60)"))
    with pytest.raises(StoreError, match="cell 'sleeps' was still running after 2 s"):
        store(path, limit=2)


def test_a_kernel_that_dies_is_told(page):
    path = page(page.code("dies", "import os\nos._exit(1)"))
    with pytest.raises(StoreError, match="the kernel died in cell 'dies'"):
        store(path)


def test_a_file_that_is_no_notebook_is_told(tmp_path):
    (tmp_path / "page.ipynb").write_text("no")
    with pytest.raises(ValueError, match="not a notebook"):
        store(tmp_path / "page.ipynb")


def test_a_stored_solution_carries_its_grading_marks(page):
    path = page(page.code("check", "print('right')", "nbval-check-output"), at="solutions/developer/page.ipynb")
    store(path)
    assert files.read(path).cells[0].metadata.nbgrader.grade
