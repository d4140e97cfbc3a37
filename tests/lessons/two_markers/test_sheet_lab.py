import pytest

from nanlab.lessons.two_markers.pictures import sheet
from nanlab.lessons.two_markers.sheet_lab import SheetLab


def test_an_empty_thursday_spoils_seven_cells():
    lab = SheetLab()
    assert lab.summary(lab.result) == "average nan · spoiled cells 7"
    assert "Thursday's share is nan" in lab.sentence(lab.result)


def test_a_thursday_without_counted_visitors_shows_both_markers():
    lab = SheetLab(sold=5)
    words = lab.chart(lab.result).words()
    assert "-inf" in words and "nan" in words


def test_leaving_thursday_out_and_putting_0_give_different_averages():
    lab = SheetLab(treat="leave out")
    assert lab.summary(lab.result) == "average 32.5 % · spoiled cells 0"
    lab.set(treat="replace")
    assert lab.summary(lab.result) == "average 26 % · spoiled cells 0"
    assert "share of 0" in lab.sentence(lab.result)


def test_an_ordinary_day_spoils_nothing_and_says_so():
    lab = SheetLab(sold=12, visitors=40)
    assert lab.sentence(lab.result) == "Every cell is a number; the average is 32 %."


def test_half_a_visitor_is_turned_down():
    with pytest.raises(ValueError, match="whole"):
        SheetLab(visitors=0.5)


def test_the_grid_counts_its_spoiled_cells_in_words():
    assert sheet(0, 0).note == "7 of 11 computed cells spoiled (bold)"
    assert sheet().note == "Every computed cell is a number."
