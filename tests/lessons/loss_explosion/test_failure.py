import pytest
import torch

from nanlab import suspects
from nanlab.course.history import digits
from nanlab.lessons import loss_explosion

fixes = {fix.name: fix for fix in loss_explosion.FIXES}
half = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


def test_the_standard_run_reads_as_the_course_prints_it():
    assert [digits(loss) for loss in loss_explosion.run().loss] == ["900.1", "1.968e+05", "1.541e+17", "inf"]


def test_the_first_bad_value_is_where_the_module_says():
    history = loss_explosion.run()
    assert history.first_bad_step == loss_explosion.FIRST_BAD_STEP
    assert history.first_bad_where == loss_explosion.FIRST_BAD_WHERE


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
