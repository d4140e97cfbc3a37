"""``nanlab author`` says what it did and fails where something is out of date."""

from pathlib import Path

import pytest

from nanlab.authoring import files
from nanlab.cli import main


@pytest.fixture
def course(page, tmp_path, monkeypatch) -> Path:
    (tmp_path / "nanlab").mkdir()
    page(page.text("title", "# T"), page.code("run", "1"), at="notebooks/developer/02_loss_explosion.ipynb")
    page(page.code("answer", "### BEGIN SOLUTION\nx = 1\n### END SOLUTION"), at="solutions/developer/a.ipynb")
    monkeypatch.chdir(tmp_path / "notebooks")
    return tmp_path


@pytest.mark.parametrize("what", ["links", "exercises"])
def test_check_fails_until_it_was_generated(course, what, capsys):
    assert main(["author", what, "--check"]) == 1
    assert f"out of date, run: nanlab author {what}" in capsys.readouterr().out
    assert main(["author", what]) == 0 and "updated" in capsys.readouterr().out
    assert main(["author", what, "--check"]) == 0


def test_store_says_what_failed_and_goes_on(page, capsys):
    bad, good = page(page.code("bad", "1 / 0"), at="bad.ipynb"), page(page.code("good", "1"), at="good.ipynb")
    assert main(["author", "store", str(bad), str(good)]) == 1
    said = capsys.readouterr()
    assert "cell 'bad', line 1: ZeroDivisionError" in said.err and f"{good}: stored" in said.out
    assert files.read(good).cells[0].execution_count == 1


def test_lint_counts_errors_and_notes(page, capsys):
    path = page(page.code("Bad_Id", "x = 1"))
    assert main(["author", "lint", str(path)]) == 1
    assert "1 notebooks, 2 errors, 0 notes" in capsys.readouterr().out


def test_outside_a_repository_it_asks_for_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["author", "links"]) == 2 and "--root" in capsys.readouterr().err
