"""The poster is one page, and says what the table of suspects says today."""

from pathlib import Path

import pytest
from pypdf import PdfReader

from nanlab import suspects
from nanlab.authoring import poster
from nanlab.cli import main

ROOT = Path(__file__).resolve().parents[2]


def text(path: Path) -> str:
    return " ".join(" ".join(page.extract_text() for page in PdfReader(path).pages).split())


def test_the_stored_poster_is_what_the_table_gives(tmp_path):
    poster.make(tmp_path / "poster.pdf")
    stale = "the poster is out of date, run: nanlab author poster"
    assert text(ROOT / poster.PLACE) == text(tmp_path / "poster.pdf"), stale


def test_it_is_one_page_with_every_suspect_and_its_first_move(tmp_path):
    assert main(["author", "poster", "--root", str(tmp_path)]) == 0
    made = tmp_path / poster.PLACE
    assert len(PdfReader(made).pages) == 1
    shown = text(made)
    for row in suspects.table():
        for said in (row.plain_see, row.title, row.first_move):
            assert said in shown


def test_the_same_table_gives_the_same_bytes(tmp_path):
    poster.make(tmp_path / "a.pdf")
    poster.make(tmp_path / "b.pdf")
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_a_table_that_has_outgrown_the_page_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(poster, "SIZE", 14)
    monkeypatch.setattr(poster, "LINE", 7)
    with pytest.raises(poster.PosterError, match="fills 3 pages"):
        poster.make(tmp_path / "poster.pdf")
    assert not (tmp_path / "poster.pdf").exists()
