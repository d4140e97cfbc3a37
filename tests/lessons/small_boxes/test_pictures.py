import pytest

from nanlab.lessons.small_boxes.pictures import boxes, plain


def test_a_number_past_the_small_box_is_marked():
    cells = boxes(65504, then_add=16).rows[1]
    assert (cells[-1].text, cells[-1].tone) == ("inf", "bad")


def test_a_number_that_fits_is_not_marked():
    assert [row[-1].tone for row in boxes(65504, then_add=15).rows[1:]] == ["plain"] * 3


def test_what_becomes_nothing_is_marked():
    cells = boxes(1e-8).rows
    assert [row[-1].tone for row in cells[1:]] == ["bad", "plain", "plain"]


@pytest.mark.parametrize(
    ("number", "text"),
    [(65520.0, "65,520"), (1e-8, "0.00000001"), (0.1, "0.1"), (float("inf"), "inf"), (0.0, "0"), (3e38, "3e+38")],
)
def test_numbers_are_written_as_a_person_writes_them(number, text):
    assert plain(number) == text
