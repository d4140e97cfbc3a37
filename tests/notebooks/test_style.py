"""Every notebook keeps the course's style, and its links lead somewhere."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from nanlab.authoring import files, glossary, links
from nanlab.authoring.lint import lint

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = files.find(ROOT, "notebooks", "solutions", "exercises")
_LINK = re.compile(r"\]\(\s*([^)\s]+)")

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.relative_to(ROOT).as_posix())


@each
def test_a_notebook_keeps_the_style(path: Path):
    errors = [str(finding) for finding in lint(path) if not finding.note]
    assert not errors, "\n".join(errors)


@each
def test_a_notebook_is_stored_in_the_one_form(path: Path):
    assert path.read_text(encoding="utf-8") == files.text_of(files.read(path)), "run: nanlab author store"


@each
def test_links_lead_to_files(path: Path):
    for cell in files.read(path).cells:
        if cell.cell_type == "markdown":
            for target in _LINK.findall(cell.source):
                place = unquote(target.split("#")[0])
                if place and "://" not in place and not place.startswith("mailto:"):
                    assert (path.parent / place).exists(), f"cell '{cell.id}' links to {target}"


def test_generating_the_links_again_changes_nothing():
    assert links.generate(ROOT, check=True) == [], "run: nanlab author links"


def test_the_glossary_and_the_links_to_it_are_up_to_date():
    assert glossary.generate(ROOT, check=True) == [], "run: nanlab author links"
