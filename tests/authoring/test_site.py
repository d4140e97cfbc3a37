"""The static pages show the stored notebooks, with answers folded, and nothing dead or half made."""

from pathlib import Path

import pytest
from nbformat import v4

from nanlab.authoring import files, site
from nanlab.cli import main

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def course(page, tmp_path) -> Path:
    """A start page, and one lesson at two depths, one of which hides an outcome and shows a picture."""
    outcome = page.code("outcome", "2 + 2", outputs=[v4.new_output("stream", text="the outcome")])
    outcome.metadata["jupyter"] = {"outputs_hidden": True}
    shown = {"image/png": PIXEL, "text/plain": "[chart] a climb"}
    picture = page.code("picture", "chart", outputs=[v4.new_output("display_data", shown)])
    link = page.text("links", "[developer](../developer/02_loss_explosion.ipynb)")
    page(page.text("title", "# Start"), at="course/notebooks/00_start_here.ipynb")
    page(page.text("title", "# Fire"), link, outcome, picture, at="course/notebooks/beginner/02_loss_explosion.ipynb")
    page(page.text("title", "# Fire"), at="course/notebooks/developer/02_loss_explosion.ipynb")
    (tmp_path / "course/nanlab").mkdir()
    return tmp_path / "course"


def test_every_notebook_becomes_a_page_and_links_lead_to_pages(course, tmp_path):
    assert site.build(course, tmp_path / "out") == 3
    first = (tmp_path / "out/index.html").read_text()
    assert 'href="notebooks/beginner/02_loss_explosion.html"' in first
    lesson = (tmp_path / "out/notebooks/beginner/02_loss_explosion.html").read_text()
    assert 'href="../developer/02_loss_explosion.html"' in lesson


def test_a_hidden_outcome_is_folded_and_a_picture_is_described(course, tmp_path):
    site.build(course, tmp_path / "out")
    lesson = (tmp_path / "out/notebooks/beginner/02_loss_explosion.html").read_text()
    fold = lesson[lesson.index("<details") : lesson.index("</details>")]
    assert "Show the output" in fold and "the outcome" in fold
    assert 'alt="[chart] a climb"' in lesson


def test_the_poster_comes_along(course, tmp_path, page):
    (course / "notebooks/poster.pdf").write_bytes(b"%PDF-1.4")
    page(page.text("title", "# Start\n\n[the poster](poster.pdf)"), at="course/notebooks/00_start_here.ipynb")
    site.build(course, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").rglob("*.pdf")] == ["poster.pdf"]


def test_a_dead_link_is_named_and_the_earlier_pages_stay(course, tmp_path):
    site.build(course, tmp_path / "out")
    path = course / "notebooks/00_start_here.ipynb"
    notebook = files.read(path)
    notebook.cells.append(v4.new_markdown_cell("[gone](beginner/13_gone.ipynb)", id="dead"))
    files.write(notebook, path)
    with pytest.raises(site.SiteError, match=r"00_start_here\.ipynb.*13_gone"):
        site.build(course, tmp_path / "out")
    assert (tmp_path / "out/index.html").is_file()


def test_a_folder_that_holds_something_else_is_left_alone(course, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.tex").touch()
    assert main(["author", "site", str(tmp_path / "out"), "--root", str(course)]) == 1
    assert "name an empty folder" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_without_sphinx_it_says_what_to_install(course, tmp_path, monkeypatch):
    monkeypatch.setattr(site, "find_spec", lambda name: None)
    with pytest.raises(site.SiteError, match=r"needs sphinx: pip install 'nanlab\[site\]'"):
        site.build(course, tmp_path / "out")
