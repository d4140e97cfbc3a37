"""The explosion lab says what the explosion does at every setting that the lessons show."""

import pytest

from nanlab.course.history import History
from nanlab.lessons import loss_explosion
from nanlab.lessons.loss_explosion import ExplosionLab
from nanlab.lessons.loss_explosion.lab import Outcome


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
    lab._pressed(next(button for button in lab.buttons if button.label == fix.title))
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
    outcome = Outcome(History(loss=losses), 0.1, 10.0, "float32", None)
    assert told in ExplosionLab().sentence(outcome)
