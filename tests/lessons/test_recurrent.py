"""Lesson 06: gradients that explode through time, the fixes, the growth law, the whisper, and both labs."""

import math

import pytest
import torch

from nanlab import suspects
from nanlab.course.history import digits
from nanlab.lessons import recurrent
from nanlab.lessons.recurrent import RecurrentLab, WhisperLab, failure, through_time, whisper

cures = pytest.mark.parametrize("fix", [f for f in recurrent.FIXES if f.cures], ids=lambda f: f.name)
wrong = pytest.mark.parametrize("fix", [f for f in recurrent.FIXES if not f.cures], ids=lambda f: f.name)


def test_the_loss_falls_until_the_long_batch_and_is_inf_one_step_later():
    history = recurrent.run()
    assert [digits(loss, 3) for loss in history.loss] == [
        "0.998",
        "0.714",
        "0.477",
        "0.304",
        "0.186",
        "4.13e+09",
        "inf",
    ]
    assert history.length == [20, 20, 20, 20, 20, 120, 20]


def test_the_first_bad_value_is_where_the_module_says():
    history = recurrent.run()
    assert (history.first_bad_step, history.first_bad_where) == (failure.FIRST_BAD_STEP, failure.FIRST_BAD_WHERE)
    assert history.first_bad_time == 4


def test_the_gradient_of_the_long_batch_is_billions_of_times_the_others():
    norms = recurrent.run().gradient_norm
    assert max(norms[:5]) < 20
    assert norms[5] > 1e10 * max(norms[:5])


@cures
def test_each_cure_works_alone_and_the_short_sequences_are_learnt(fix):
    history = recurrent.run(**fix.knobs, steps=60)
    short = [loss for loss, length in zip(history.loss, history.length, strict=True) if length == failure.SHORT]
    assert history.finite
    assert short[-1] < short[0] / 50


@cures
def test_a_cured_run_agrees_with_the_same_run_in_float64(fix):
    ours = recurrent.run(**fix.knobs, steps=17)
    exact = recurrent.run(**fix.knobs, steps=17, dtype=torch.float64)
    assert ours.loss == pytest.approx(exact.loss, rel=1e-2)


@wrong
def test_each_wrong_fix_leaves_the_run_to_die(fix):
    history = recurrent.run(**fix.knobs)
    assert not history.finite
    assert history.first_bad_step in (6, 7)


def test_clipping_keeps_the_run_alive_and_the_cause_in_place():
    history = recurrent.run(clip=20.0, steps=60)
    long = [loss for loss, length in zip(history.loss, history.length, strict=True) if length == failure.LONG]
    assert min(long) > 1e4
    assert min(history.radius) > 1.09


def test_a_held_radius_learns_long_sequences_too():
    history = recurrent.run(hold=True, steps=60)
    assert all(radius == pytest.approx(1, abs=1e-4) for radius in history.radius)
    assert history.loss[59] < 1e-6
    assert history.length[59] == failure.LONG


def test_clipping_cannot_help_a_sequence_on_which_the_state_itself_overflows():
    history = recurrent.run(clip=20.0, length=1000)
    assert (history.first_bad_step, history.first_bad_where) == (5, "activation")


def test_the_same_step_kills_a_relu_network_without_a_nan():
    history = recurrent.run(activation="relu")
    assert history.finite
    assert set(history.gradient_norm[6:]) == {0.0}


def test_a_tanh_network_survives_the_same_batch():
    history = recurrent.run(activation="tanh")
    assert history.finite
    assert max(history.gradient_norm) < 100


@pytest.mark.parametrize(("dtype", "step"), [(torch.bfloat16, 6), (torch.float16, 5)], ids=str)
def test_half_precision_dies_too_and_fp16_on_the_long_batch_itself(dtype, step):
    history = recurrent.run(dtype=dtype)
    assert history.first_bad_step == step
    assert digits(history.loss[0], 1) == "1"


def test_every_fix_changes_one_knob():
    assert all(len(fix.knobs) == 1 for fix in recurrent.FIXES)


def test_the_suspects_it_names_are_in_the_table():
    assert [suspects.get(name).name for name in recurrent.SUSPECTS] == list(recurrent.SUSPECTS)


@pytest.mark.parametrize("radius", [0.9, 1.0, 1.1, 1.3])
def test_a_linear_recurrence_obeys_the_growth_law_at_every_time_step(radius):
    seen = through_time.trace(radius, length=80)
    assert seen.gradient == pytest.approx(seen.law, rel=1e-4)


def test_tanh_obeys_it_in_silence_and_vanishes_on_numbers():
    silent = through_time.trace(1.1, 100, "tanh", silent=True)
    loud = through_time.trace(1.1, 100, "tanh")
    assert silent.gradient == pytest.approx(silent.law, rel=1e-2)
    assert loud.gradient[0] < loud.gradient[-1] / 1000


def test_a_linear_recurrence_overflows_on_the_way_forward():
    seen = through_time.trace(1.1, 1000)
    assert (seen.first_bad_where, seen.first_bad_time) == ("state", 938)
    assert not math.isfinite(seen.loss)


def test_tanh_overflows_on_the_way_back_with_states_and_loss_finite():
    seen = through_time.trace(1.5, 300, "tanh", silent=True)
    assert seen.first_bad_where == "gradient"
    assert math.isfinite(seen.loss)
    assert max(seen.state) < 1


def test_a_radius_of_1_removes_both_overflows_and_agrees_with_float64():
    ours = through_time.trace(1.0, 1000, "tanh", silent=True)
    exact = through_time.trace(1.0, 1000, "tanh", silent=True, dtype=torch.float64)
    assert ours.first_bad_where is None
    assert ours.gradient == pytest.approx(exact.gradient, rel=1e-4)


def test_clipping_bounds_a_finite_gradient_and_zeroes_one_whose_norm_overflows():
    assert through_time.trace(1.1, 100, clip=1.0).clipped == pytest.approx(1, rel=1e-4)
    huge = through_time.trace(1.5, 150, "tanh", silent=True, clip=1.0)
    assert huge.first_bad_where is None
    assert (huge.norm, huge.clipped) == (math.inf, 0.0)


@pytest.mark.parametrize(("radius", "steps"), [(1.01, 8917), (1.05, 1819), (1.1, 931), (1.5, 219), (2.0, 128)])
def test_the_overflow_length_is_where_repeated_multiplication_overflows(radius, steps):
    assert through_time.overflow_length(radius) == steps
    assert whisper.pass_on(radius, steps)[-1] < math.inf
    assert whisper.pass_on(radius, steps + 1)[-1] == math.inf


@pytest.mark.parametrize(
    ("gradient", "left"),
    [([math.nan, 1.0], [math.nan, math.nan]), ([math.inf, 1.0], [math.nan, 0.0]), ([1e20, 1e20], [0.0, 0.0])],
)
def test_what_clipping_makes_of_a_gradient_that_it_cannot_repair(gradient, left):
    torch.testing.assert_close(torch.tensor(whisper.turn_down(gradient)), torch.tensor(left), equal_nan=True)


def test_clipping_keeps_the_direction_of_a_healthy_gradient():
    assert whisper.turn_down([3.0, 4.0]) == [0.6, 0.8]


def test_a_whisper_is_told_in_words():
    assert whisper.told(whisper.pass_on(1.1, 101)) == "person 101 hears it 13,800 times as loud as the first"
    assert whisper.told(whisper.pass_on(0.9, 101)) == "person 101 hears it 38,000 times quieter than the first"
    assert whisper.told(whisper.pass_on(1.0, 101)) == "person 101 hears it as loud as the first"
    assert "person 932 of 1000" in whisper.told(whisper.pass_on(1.1, 1000))


def text(lab):
    return lab._repr_mimebundle_()[0]["text/plain"]


def said(lab):
    return lab.sentence(lab.result)


def test_the_standard_pass_is_told_as_the_lessons_store_it():
    assert text(RecurrentLab()) == (
        "radius=1.1, length=100, linear, numbers, lr=0.001, float32 · "
        "gradient 627 at the last time step, 7.85e+06 at the first · first non-finite: none"
    )


def test_a_linear_recurrence_is_said_to_follow_the_law():
    assert "99 time steps back the gradient is 12,500 times" in said(RecurrentLab())
    assert "as the law says" in said(RecurrentLab())


def test_tanh_on_numbers_is_said_to_depart_from_it():
    assert "the law, which knows no activation, says 12,500 times" in said(RecurrentLab(activation="tanh"))


def test_a_forward_overflow_is_told_from_one_on_the_way_back():
    forward = RecurrentLab(radius=2.0, length=200)
    back = RecurrentLab(radius=1.5, length=300, activation="tanh", sequence="silence")
    assert "on the way forward" in said(forward) and "the state, at time step" in said(forward)
    assert "on the way back" in said(back) and "States and loss are finite" in said(back)


def test_clipping_shortens_the_step_and_leaves_the_slope():
    lab = RecurrentLab()
    _ = lab.widget
    lab.view.asked({"press": [button.label for button in lab.buttons].index("Clip the norm at 1"), "texts": {}})
    assert "leaves the slope of the curve" in said(lab)
    assert dict(lab.table(lab.result)[1])["length of the step (learning rate × norm)"] == "0.001"
    assert "after clipping" in lab.chart(lab.result).words()


def test_clipping_a_norm_that_overflows_leaves_nothing():
    lab = RecurrentLab(radius=1.5, length=150, activation="tanh", sequence="silence", clip=1.0)
    assert "The norm itself is inf and clipping leaves 0" in said(lab)


def test_a_radius_of_1_neither_grows_nor_fades():
    assert "nothing grows, nothing fades" in said(RecurrentLab(radius=1.0))


def test_a_half_precision_pass_stores_no_digit_of_its_gradient():
    assert text(RecurrentLab(dtype="bfloat16", length=50)).endswith(
        "gradient finite at the last time step, finite at the first · first non-finite: none"
    )


@pytest.mark.parametrize(
    ("dtype", "limit"), [("float16", "fp16 max 65,504"), ("float32", "fp32 max"), ("bfloat16", "bf16 max")]
)
def test_the_limit_of_the_format_is_in_the_picture_of_a_run_that_passes_it(dtype, limit):
    lab = RecurrentLab(dtype=dtype, radius=2.0, length=150, activation="tanh", sequence="silence")
    assert limit in lab.chart(lab.result).svg()


def test_every_control_changes_what_is_said_stored_or_drawn():
    def shown(lab):
        return said(lab), lab.table(lab.result)

    others = {"radius": 1.2, "length": 50, "activation": "tanh", "sequence": "silence", "clip": 1.0, "lr": 0.1}
    for name, value in others.items():
        assert shown(RecurrentLab(**{name: value})) != shown(RecurrentLab()), name


def test_the_whisper_lab_counts_the_people():
    assert text(WhisperLab(people=1000)) == (
        "times=1.1, people=1000 · the last person hears inf · first that does not fit: person 932"
    )
    assert text(WhisperLab()) == "times=1.1, people=100 · the last person hears 12500 · first that does not fit: none"


def test_the_whisper_lab_tells_louder_quieter_and_equal_apart():
    assert "That is a shout." in said(WhisperLab())
    assert "It can no longer be heard." in said(WhisperLab(times=0.9))
    assert "All 100 people hear the same." in said(WhisperLab(times=1.0))
    assert "no number" in said(WhisperLab(people=1000))
