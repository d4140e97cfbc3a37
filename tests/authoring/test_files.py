"""A notebook has one form on disk."""

import nbformat
from nbformat import v4

from nanlab.authoring import files


def test_editors_traces_are_left_out(tmp_path):
    cell = v4.new_code_cell(
        "1", id="one", metadata={"scrolled": True, "tags": [], "execution": {"iopub.status.busy": "now"}, "jupyter": {}}
    )
    notebook = v4.new_notebook(
        cells=[cell], metadata={"widgets": {}, "kernelspec": {"name": "other", "display_name": "Other"}}
    )
    files.write(notebook, tmp_path / "page.ipynb")
    stored = nbformat.read(tmp_path / "page.ipynb", as_version=4)
    assert stored.cells[0].metadata == {"jupyter": {}}
    assert set(stored.metadata) == {"kernelspec", "language_info"} and stored.metadata.kernelspec.name == "python3"
    assert "version" not in stored.metadata.language_info


def test_a_stream_cut_in_two_is_joined():
    parts = [v4.new_output("stream", name="stdout", text=part) for part in ("a\n", "b\n")]
    notebook = v4.new_notebook(cells=[v4.new_code_cell("1", id="one", outputs=parts)])
    files.tidy(notebook)
    assert [output.text for output in notebook.cells[0].outputs] == ["a\nb\n"]


def test_what_answers_a_question_is_kept_hidden(page):
    asked, again = page.code("ask", "nanlab.predict('02.third_loss')"), page.code("again", "predict('02.which_fix')")
    between = page.text("between", "## The next section")
    path = page(page.code("before", "1"), asked, again, between, page.code("answer", "2"), page.code("after", "3"))
    code = [cell for cell in files.read(path).cells if cell.cell_type == "code"]
    hidden = {cell.id: cell.metadata.get("jupyter", {}).get("outputs_hidden", False) for cell in code}
    assert hidden == {"before": False, "ask": False, "again": False, "answer": True, "after": False}


def test_writing_the_same_again_touches_nothing(tmp_path):
    path = tmp_path / "new" / "page.ipynb"
    assert files.write(v4.new_notebook(cells=[v4.new_markdown_cell("# T", id="title")]), path)
    assert not files.write(files.read(path), path)
    assert list(path.parent.iterdir()) == [path]


def test_an_editors_own_copies_are_not_found(tmp_path):
    for name in ("notebooks/a.ipynb", "notebooks/.ipynb_checkpoints/a-checkpoint.ipynb", "solutions/b.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert files.find(tmp_path, "notebooks", "solutions") == [
        tmp_path / "notebooks/a.ipynb",
        tmp_path / "solutions/b.ipynb",
    ]
