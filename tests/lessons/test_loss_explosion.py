"""Lesson 02: the explosion happens, where it says, each fix does what it says, and lab and pictures agree."""

import pytest
import torch

from nanlab import suspects
from nanlab.course.history import History, digits
from nanlab.lessons import loss_explosion
from nanlab.lessons.loss_explosion import ExplosionLab, failure, pictures
from nanlab.lessons.loss_explosion.lab import Outcome

fixes = {fix.name: fix for fix in loss_explosion.FIXES}
half = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


def test_the_standard_run_reads_as_the_course_prints_it():
    assert [digits(loss) for loss in loss_explosion.run().loss] == ["900.1", "1.968e+05", "1.541e+17", "inf"]


def test_the_first_bad_value_is_where_the_module_says():
    history = loss_explosion.run()
    assert history.first_bad_step == failure.FIRST_BAD_STEP
    assert history.first_bad_where == failure.FIRST_BAD_WHERE


@pytest.mark.parametrize("fix", [f for f in loss_explosion.FIXES if f.cures], ids=lambda f: f.name)
def test_each_cure_works_alone_and_the_loss_falls(fix):
    history = loss_explosion.run(**fix.knobs, steps=40)
    assert history.finite
    assert history.loss[-1] < history.loss[0] / 10


@pytest.mark.parametrize("fix", [f for f in loss_explosion.FIXES if f.cures], ids=lambda f: f.name)
def test_a_cured_run_agrees_with_the_same_run_in_float64(fix):
    ours = loss_explosion.run(**fix.knobs, steps=40).loss[-1]
    exact = loss_explosion.run(**fix.knobs, steps=40, dtype=torch.float64).loss[-1]
    assert ours == pytest.approx(exact, rel=1e-3)


def test_scaling_the_inputs_after_the_targets_are_made_explodes_at_step_6():
    history = loss_explosion.run(**fixes["scale_inputs_only"].knobs)
    assert not fixes["scale_inputs_only"].cures
    assert (history.first_bad_step, history.first_bad_where) == (6, "loss")


@half
def test_half_precision_explodes_too(dtype):
    history = loss_explosion.run(dtype=dtype)
    assert not history.finite
    assert digits(history.loss[0], 2) == "9e+02"


def test_fp16_has_no_room_for_the_second_loss():
    assert loss_explosion.run(dtype=torch.float16).first_bad_step == 1


def test_every_fix_changes_one_knob():
    assert all(len(fix.knobs) == 1 for fix in loss_explosion.FIXES)


def test_the_suspects_it_names_are_in_the_table():
    assert [suspects.get(name).name for name in loss_explosion.SUSPECTS] == list(loss_explosion.SUSPECTS)


def text(**values):
    return ExplosionLab(**values)._repr_mimebundle_()[0]["text/plain"]


def test_the_standard_run_is_told_as_the_lessons_store_it():
    assert text() == "lr=0.1, scale=10, float32 · start 900, end inf · first non-finite step 3"


def test_a_cured_run_has_no_bad_step():
    assert text(lr=0.001) == "lr=0.001, scale=10, float32 · start 900, end 17 · first non-finite step none"


def test_a_half_precision_run_stores_no_digit_of_its_end():
    assert text(dtype="bfloat16", lr=0.001).endswith("start 900, end finite · first non-finite step none")


@pytest.mark.parametrize("fix", loss_explosion.FIXES, ids=lambda fix: fix.name)
def test_each_fix_button_says_whether_it_cures_and_why(fix):
    lab = ExplosionLab()
    _ = lab.widget
    lab.view.asked({"press": [button.label for button in lab.buttons].index(fix.title), "texts": {}})
    assert lab.result.history.finite == fix.cures
    said = lab.sentence(lab.result)
    assert ("This fix cures it." if fix.cures else "This fix does not cure it.") in said
    assert fix.why in said


def test_settings_that_are_no_fix_are_not_called_one():
    lab = ExplosionLab(lr=0.002)
    assert "fix" not in lab.sentence(lab.result)


@pytest.mark.parametrize(
    ("values", "limit", "step"),
    [
        ({}, "fp32 max 3.403e+38", 3),
        ({"dtype": "float16"}, "fp16 max 65,504", 1),
        ({"dtype": "bfloat16"}, "bf16 max", 3),
    ],
)
def test_the_limit_of_the_format_is_drawn_and_the_first_bad_step_marked(values, limit, step):
    lab = ExplosionLab(**values)
    svg = lab.chart(lab.result).svg()
    assert limit in svg
    assert f"at step {step}" in svg


def test_a_value_too_large_at_once_is_told_as_such():
    lab = ExplosionLab(scale=100.0, dtype="float16")
    assert "at the very first step" in lab.sentence(lab.result)


@pytest.mark.parametrize(
    ("losses", "told"),
    [
        ([9.0, 3.0, 1.0], "falls at every step"),
        ([9.0, 10.0, 1.0], "does not fall at every step"),
        ([9.0, 1.0, 99.0], "that is not a cure"),
    ],
)
def test_a_finite_run_is_told_by_how_it_ends(losses, told):
    outcome = Outcome(History(loss=losses), "float32", None)
    assert told in ExplosionLab().sentence(outcome)


def heights(chart):
    return chart.series[1].y


def test_a_small_rate_walks_down_without_crossing():
    chart = pictures.valley(learning_rate=0.1, steps=8)
    assert all(later < earlier for earlier, later in zip(heights(chart), heights(chart)[1:], strict=False))
    assert "stays on the left slope" in chart.alt


def test_a_rate_above_one_climbs_at_every_step():
    chart = pictures.valley(learning_rate=1.2, steps=4)
    assert all(later > earlier for earlier, later in zip(heights(chart), heights(chart)[1:], strict=False))
    assert "crosses the valley" in chart.alt


@pytest.mark.parametrize("rate", [0.1, 1.2])
def test_a_step_is_the_slope_times_the_rate(rate):
    walk = pictures.valley(learning_rate=rate, steps=1).series[1].x
    assert walk[1] == pytest.approx(walk[0] - rate * 2 * walk[0])


def test_without_steps_one_point_stands_on_the_slope():
    assert heights(pictures.valley()) == [4.0]
