"""Lesson 01: the two bad days and their fixes, the sheet that they spoil, and the two labs."""

import math

import pytest
import torch

from nanlab import suspects
from nanlab.course.history import digits
from nanlab.lessons import two_markers
from nanlab.lessons.two_markers import failure
from nanlab.lessons.two_markers.number_lab import SHOWN, NumberLab, apply
from nanlab.lessons.two_markers.pictures import sheet, spoiled, week
from nanlab.lessons.two_markers.sheet_lab import SheetLab

fixes = {fix.name: fix for fix in two_markers.FIXES}
each_bad_day = pytest.mark.parametrize("bad_day", ["empty", "unrecorded"])


def test_an_empty_day_makes_nan_and_the_weights_stay_nan():
    history = two_markers.run("empty", stop=False)
    assert [digits(loss) for loss in history.loss] == ["1.35", "0.4908", "0.06823", "nan", "nan", "nan"]
    assert math.isnan(history.slope)


def test_an_unrecorded_day_makes_inf_twice_and_then_nan():
    history = two_markers.run("unrecorded", stop=False)
    assert [digits(loss) for loss in history.loss] == ["1.35", "0.4908", "0.06823", "inf", "inf", "nan"]


@each_bad_day
def test_the_first_bad_value_is_the_share_of_the_bad_day(bad_day):
    history = two_markers.run(bad_day)
    assert history.first_bad_step == failure.FIRST_BAD_STEP
    assert history.first_bad_where == failure.FIRST_BAD_WHERE
    assert digits(history.largest_activation[-1]) == failure.FIRST_BAD_VALUE[bad_day]


def test_without_a_bad_day_the_run_is_finite_and_finds_the_line():
    history = two_markers.run("none", steps=1200)
    assert history.finite
    assert (history.slope, history.base) == pytest.approx((failure.SLOPE, failure.BASE), abs=1e-4)


@each_bad_day
def test_leaving_the_day_out_cures_it_and_finds_the_line(bad_day):
    history = two_markers.run(bad_day, steps=1200, **fixes["drop_rows"].knobs)
    assert history.finite
    assert (history.slope, history.base) == pytest.approx((failure.SLOPE, failure.BASE), abs=1e-4)


@each_bad_day
def test_the_cured_run_agrees_with_float64(bad_day):
    ours = two_markers.run(bad_day, **fixes["drop_rows"].knobs).loss
    exact = two_markers.run(bad_day, **fixes["drop_rows"].knobs, dtype=torch.float64).loss
    assert ours == pytest.approx(exact, rel=1e-4)


def test_replacing_nan_is_finite_and_finds_another_line():
    history = two_markers.run("empty", steps=1200, **fixes["replace"].knobs)
    assert history.finite
    assert abs(history.slope - failure.SLOPE) > 0.05


def test_replacing_inf_moves_the_overflow_into_the_loss():
    history = two_markers.run("unrecorded", **fixes["replace"].knobs)
    assert (history.first_bad_step, history.first_bad_where) == (3, "loss")


def test_a_check_for_nan_skips_the_empty_day_and_misses_the_unrecorded_one():
    assert two_markers.run("empty", **fixes["skip_nan_loss"].knobs).finite
    assert not two_markers.run("unrecorded", **fixes["skip_nan_loss"].knobs).finite


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
@each_bad_day
def test_no_number_format_saves_a_division_by_zero(bad_day, dtype):
    assert two_markers.run(bad_day, dtype=dtype).first_bad_step == failure.FIRST_BAD_STEP


@each_bad_day
def test_no_learning_rate_saves_it(bad_day):
    assert two_markers.run(bad_day, lr=1e-6).first_bad_step == failure.FIRST_BAD_STEP


def test_one_bad_cell_spoils_the_average_and_every_difference():
    sheet = two_markers.sheet(torch.tensor([5.0, 0.0, 6.0]), torch.tensor([20.0, 0.0, 20.0]))
    assert sheet.share.isnan().tolist() == [False, True, False]
    assert sheet.average.isnan() and sheet.difference.isnan().all()


def test_an_infinite_share_makes_minus_inf_of_the_others_and_nan_of_itself():
    sheet = two_markers.sheet(torch.tensor([5.0, 5.0]), torch.tensor([20.0, 0.0]))
    assert sheet.average.item() == math.inf
    assert sheet.difference[0].item() == -math.inf and sheet.difference[1].isnan()


def test_leaving_out_and_replacing_give_different_averages():
    sold, visitors = torch.tensor([5.0, 0.0]), torch.tensor([20.0, 0.0])
    assert two_markers.sheet(sold, visitors, "leave out").average.item() == 0.25
    assert two_markers.sheet(sold, visitors, "replace").average.item() == 0.125


def test_an_unknown_treatment_is_turned_down():
    with pytest.raises(ValueError, match="leave out"):
        two_markers.sheet(torch.ones(1), torch.ones(1), "drop")


def test_the_first_marker_is_named_with_its_step():
    assert two_markers.run("empty").first_marker() == "nan at step 3"
    assert two_markers.run("unrecorded").first_marker() == "inf at step 3"
    assert two_markers.run("none").first_marker() == "none"


def test_every_fix_changes_one_knob():
    assert all(len(fix.knobs) == 1 for fix in two_markers.FIXES)


def test_the_suspects_it_names_are_in_the_table():
    assert [suspects.get(name).name for name in two_markers.SUSPECTS] == list(two_markers.SUSPECTS)


in_torch = {
    "+ 15": lambda x: x + 15,
    "+ 16": lambda x: x + 16,
    "× 2": lambda x: x * 2,
    "× itself": lambda x: x * x,
    "÷ 0": lambda x: x / 0,
    "− itself": lambda x: x - x,
    "× 0": lambda x: x * 0,
}


@pytest.mark.parametrize("operation", in_torch)
@pytest.mark.parametrize("fmt", SHOWN[:3], ids=lambda f: f.name)
def test_an_operation_gives_what_torch_gives(fmt, operation):
    for value in (-65504.0, -0.1, 0.0, 0.1, 1.0, 300.0, 65488.0, 65504.0, float("inf"), float("nan")):
        held = torch.tensor(value).to(getattr(torch, fmt.torch_name))
        theirs = in_torch[operation](held)
        ours = torch.tensor(apply(fmt, operation, held.item())).to(theirs.dtype)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


def test_fp16_holds_65504_plus_15_and_not_plus_16():
    assert NumberLab(first="+ 15").result.held["fp16"] == 65504
    assert NumberLab(first="+ 16").result.held["fp16"] == float("inf")


def test_inf_minus_inf_is_nan_where_doubling_overflowed_and_0_where_it_did_not():
    held = NumberLab(first="× 2", second="− itself").result.held
    assert held["fp16"] != held["fp16"]
    assert held["fp32"] == held["bf16"] == 0


def test_the_next_value_up_from_the_largest_is_infinity():
    lab = NumberLab(first="to the next value up")
    assert lab.result.held["fp16"] == float("inf")
    assert ["fp16", "inf", "none", "none"] in lab.table(lab.result)[1]


def test_the_picture_shows_the_bits_of_every_format():
    lab = NumberLab(value=1)
    words = lab.chart(lab.result).words()
    assert "fp16  1 0011110000000000".replace("  ", " ") in words.replace("  ", " ")


def test_the_summary_names_every_format_and_no_setting():
    lab = NumberLab()
    assert lab.summary(lab.result) == "fp32 65504, bf16 65536, fp16 65504, fp8 E5M2 inf, fp8 E4M3 nan"
    assert lab.settings() == "65504"


def test_the_sentence_tells_finite_from_not_finite():
    lab = NumberLab()
    assert lab.sentence(lab.result).startswith("Not finite: fp8 E5M2 inf")
    lab.set(value=1)
    assert lab.sentence(lab.result).startswith("All five")
    lab.set(value=0, first="÷ 0")
    assert lab.sentence(lab.result).startswith("No format")


def test_every_button_can_be_run():
    lab = NumberLab()
    start = dict(lab.values)
    for button in lab.buttons:
        lab.set(**{**start, **button.sets})


def test_an_ordinary_week_has_no_spoiled_cell():
    assert spoiled(week(12, 40)[0]) == 0
    assert "32 %" in sheet().words()


def test_a_bad_thursday_is_drawn_as_bad_cells():
    assert sum(cell.tone == "bad" for row in sheet(0, 0).rows for cell in row) == 7


def test_a_day_left_out_is_named_so():
    assert sheet(0, 0, "leave out").words().count("left out") == 2


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
