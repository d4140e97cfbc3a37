"""The first use of a word in a lesson leads to the glossary, once."""

from pathlib import Path

import pytest

from nanlab.authoring import files, glossary

LESSON = "notebooks/beginner/02_loss_explosion.ipynb"


@pytest.fixture
def linked(page, tmp_path):
    """The text of a beginner's lesson of these cells, linked."""

    def link(*sources: str) -> list[str]:
        page(*(page.text(f"text-{n}", source) for n, source in enumerate(sources)), at=LESSON)
        glossary.generate(tmp_path)
        return [cell.source for cell in files.read(tmp_path / LESSON).cells]

    return link


def test_the_first_use_is_linked_and_the_second_is_not(linked):
    cells = linked("# Loss", "A large loss.", "The loss again.")
    assert cells[1:] == ["A large [loss](../glossary.ipynb#loss).", "The loss again."]


def test_a_word_that_the_lesson_explains_is_left_alone(linked):
    assert linked("The **loss** says how wrong.", "A loss.") == ["The **loss** says how wrong.", "A loss."]


@pytest.mark.parametrize(
    "source", ["`loss` and $loss$", "[the loss](x.md)", "# The loss", "```\nloss\n```", "lossless"]
)
def test_code_formulas_links_headings_and_longer_words_are_left_alone(linked, source):
    assert linked(source) == [source]


def test_the_longer_word_wins(linked):
    assert linked("The gradient norm grew.") == ["The [gradient norm](../glossary.ipynb#gradient-norm) grew."]


def test_a_name_in_capitals_is_another_word(linked):
    assert linked("CLIP, and to clip.") == ["CLIP, and to [clip](../glossary.ipynb#clipping)."]


def test_generating_again_changes_nothing_and_moves_a_link_whose_place_is_no_longer_first(linked, tmp_path):
    linked("A loss.")
    assert glossary.generate(tmp_path) == []
    lesson = files.read(tmp_path / LESSON)
    lesson.cells[0].source = "First a loss. " + lesson.cells[0].source
    files.write(lesson, tmp_path / LESSON)
    assert glossary.generate(tmp_path, check=True) == [tmp_path / LESSON]
    glossary.generate(tmp_path)
    assert files.read(tmp_path / LESSON).cells[0].source == "First a [loss](../glossary.ipynb#loss). A loss."


def test_every_anchor_is_a_heading_of_the_page():
    headings = {cell.source.splitlines()[0].removeprefix("## ") for cell in glossary.notebook().cells[1:]}
    assert {glossary.slug(heading) for heading in headings} == {word.anchor for word in glossary.words().values()}


def test_the_page_is_in_the_one_form(tmp_path):
    glossary.generate(tmp_path)
    path = tmp_path / "notebooks/glossary.ipynb"
    assert path.read_text(encoding="utf-8") == files.text_of(files.read(Path(path)))
