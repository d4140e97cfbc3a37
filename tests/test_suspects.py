import re
from dataclasses import replace

import pytest

from nanlab import course, suspects

every_suspect = pytest.mark.parametrize("row", list(suspects.table()), ids=lambda row: row.name)


@every_suspect
def test_every_row_is_complete_and_says_a_year_or_a_document(row):
    assert row.title.strip() and all(row.said().values())
    assert row.kind in ("fault", "harmless")
    assert row.sources
    assert all(re.search(r"\b(19|20)\d\d\b|documentation", source) for source in row.sources)


@every_suspect
def test_a_row_points_to_a_lesson_that_is_there_or_to_none(row):
    assert row.lesson is None or course.topic(row.lesson)


def test_the_table_has_the_five_commonest_suspects():
    taught = {
        "lr_too_high",
        "log_or_div_of_zero",
        "unscaled_inputs_or_targets",
        "exploding_gradients",
        "fp16_overflow_or_no_scaler",
    }
    assert taught <= set(suspects.SUSPECTS)


def test_an_unknown_name_gets_the_closest_ones():
    with pytest.raises(KeyError, match="lr_too_high"):
        suspects.get("lr_to_high")


def test_text_shows_every_field_of_the_row():
    row = suspects.get("lr_too_high")
    text = re.sub(r"\s+", " ", str(row))
    for field in suspects.COLUMNS:
        assert getattr(row, field) in text


def test_a_row_that_no_lesson_teaches_names_none():
    row = replace(suspects.get("lr_too_high"), lesson=None)
    assert "Lesson" not in str(row) and "Lesson" not in row._repr_html_()
    assert row not in suspects.in_plain_words("03_padding_row").known


def test_markdown_has_one_line_a_suspect_and_no_broken_columns():
    lines = suspects.table().markdown().splitlines()
    assert len(lines) == 2 + len(suspects.table())
    assert {line.count(" | ") for line in lines[2:]} == {len(suspects.COLUMNS) - 1}


def test_html_is_a_card_a_row_with_every_field_named():
    html = suspects.table()._repr_html_()
    assert html.count("<caption") == len(suspects.table())
    assert html.count('scope="row"') == sum(len(row.said()) for row in suspects.table())


@every_suspect
def test_every_row_says_it_in_plain_words_and_has_a_first_move(row):
    for field in (*suspects.PLAIN, "first_move"):
        assert getattr(row, field).strip()
    plain = " ".join(getattr(row, field) for field in suspects.PLAIN)
    assert len(plain.split()) < 50
    assert not re.search(r"[_()`²]|\b(tensor|dtype|gradient|norm|Jacobian|logit)s?\b", plain.replace("(bf16)", ""))


def test_plain_words_grow_lesson_by_lesson_and_mark_those_of_today():
    third = suspects.in_plain_words("03_padding_row")
    assert [row.name for row in third.new] == ["log_or_div_of_zero"]
    assert [row.name for row in third.known] == ["lr_too_high", "unscaled_inputs_or_targets", "bad_data"]
    html, text = third._repr_html_(), str(third)
    assert html.count("; today)") == text.count("(today)") == 1
    assert html.count('scope="col"') == 3 and html.count('scope="row"') == 4


def test_a_beginner_meets_two_suspects_in_the_first_lesson_and_none_is_marked():
    first = suspects.in_plain_words("01_two_markers")
    assert [row.name for row in first.new] == ["log_or_div_of_zero", "bad_data"] and first.known == ()
    assert "(today)" not in str(first)


def test_a_lesson_finds_the_rows_it_has_earned():
    earned = [row.name for row in suspects.for_lesson("02_loss_explosion")]
    assert earned == ["lr_too_high", "unscaled_inputs_or_targets"]
