import math

import pytest
import torch

from nanlab import suspects
from nanlab.course.history import digits
from nanlab.lessons import two_markers

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
    assert history.first_bad_step == two_markers.FIRST_BAD_STEP
    assert history.first_bad_where == two_markers.FIRST_BAD_WHERE
    assert digits(history.largest_activation[-1]) == two_markers.FIRST_BAD_VALUE[bad_day]


def test_without_a_bad_day_the_run_is_finite_and_finds_the_line():
    history = two_markers.run("none", steps=1200)
    assert history.finite
    assert (history.slope, history.base) == pytest.approx((two_markers.SLOPE, two_markers.BASE), abs=1e-4)


@each_bad_day
def test_leaving_the_day_out_cures_it_and_finds_the_line(bad_day):
    history = two_markers.run(bad_day, steps=1200, **fixes["drop_rows"].knobs)
    assert history.finite
    assert (history.slope, history.base) == pytest.approx((two_markers.SLOPE, two_markers.BASE), abs=1e-4)


@each_bad_day
def test_the_cured_run_agrees_with_float64(bad_day):
    ours = two_markers.run(bad_day, **fixes["drop_rows"].knobs).loss
    exact = two_markers.run(bad_day, **fixes["drop_rows"].knobs, dtype=torch.float64).loss
    assert ours == pytest.approx(exact, rel=1e-4)


def test_replacing_nan_is_finite_and_finds_another_line():
    history = two_markers.run("empty", steps=1200, **fixes["replace"].knobs)
    assert history.finite
    assert abs(history.slope - two_markers.SLOPE) > 0.05


def test_replacing_inf_moves_the_overflow_into_the_loss():
    history = two_markers.run("unrecorded", **fixes["replace"].knobs)
    assert (history.first_bad_step, history.first_bad_where) == (3, "loss")


def test_a_check_for_nan_skips_the_empty_day_and_misses_the_unrecorded_one():
    assert two_markers.run("empty", **fixes["skip_nan_loss"].knobs).finite
    assert not two_markers.run("unrecorded", **fixes["skip_nan_loss"].knobs).finite


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
@each_bad_day
def test_no_number_format_saves_a_division_by_zero(bad_day, dtype):
    assert two_markers.run(bad_day, dtype=dtype).first_bad_step == two_markers.FIRST_BAD_STEP


@each_bad_day
def test_no_learning_rate_saves_it(bad_day):
    assert two_markers.run(bad_day, lr=1e-6).first_bad_step == two_markers.FIRST_BAD_STEP


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
