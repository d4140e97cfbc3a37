"""Lesson 04: overflow and underflow in half precision, their fixes, the lab and the boxes."""

import math

import pytest
import torch

from nanlab import suspects
from nanlab.formats import BF16, FP16
from nanlab.lessons import small_boxes
from nanlab.lessons.small_boxes import failure
from nanlab.lessons.small_boxes.gradients import activation_gradients
from nanlab.lessons.small_boxes.lab import HalfLab, spread
from nanlab.lessons.small_boxes.pictures import boxes, plain

cures = pytest.mark.parametrize("fix", [f for f in small_boxes.FIXES if f.cures], ids=lambda f: f.name)
wrong = pytest.mark.parametrize("fix", [f for f in small_boxes.FIXES if not f.cures], ids=lambda f: f.name)


def exact(steps: int = 100) -> float:
    return small_boxes.run(dtype=torch.float64, steps=steps).loss[-1]


def test_the_standard_run_overflows_in_its_first_forward_pass():
    history = small_boxes.run()
    assert history.first_bad_step == failure.FIRST_BAD_STEP
    assert history.first_bad_where == failure.FIRST_BAD_WHERE
    assert history.largest_activation[0] == math.inf


def test_the_value_that_overflows_is_the_square_and_not_what_is_squared():
    torch.manual_seed(0)
    inputs, _, first, last = failure._setup(300.0, 0, torch.float16)
    with failure.autocast(torch.float16):
        squares, _ = failure.forward(inputs, first, last, 300.0, False)
        hidden = first(inputs)
    assert hidden.isfinite().all()
    assert squares.isinf().any() and not squares.isnan().any()
    assert (hidden.double().square()[squares.isinf()] >= 65520).all()


@cures
def test_each_cure_works_alone_and_agrees_with_float64(fix):
    history = small_boxes.run(**fix.knobs, steps=100)
    assert history.finite and history.moved
    assert history.loss[-1] == pytest.approx(exact(), rel=0.05)


@wrong
def test_a_wrong_fix_leaves_the_overflow(fix):
    history = small_boxes.run(**fix.knobs)
    assert (history.first_bad_step, history.first_bad_where) == (0, "activation")


def test_a_grad_scaler_skips_every_step_and_halves_for_ever():
    history = small_boxes.run(scaler=True, steps=20)
    assert history.scales == [2.0 ** (16 - step) for step in range(21)]
    assert history.skipped == 20
    assert not history.moved


def test_the_scale_reaches_zero_after_166_steps():
    history = small_boxes.run(scaler=True, steps=170)
    assert history.scales.index(0.0) == 166


def test_a_small_loss_weight_leaves_no_gradient_in_fp16_and_the_weights_stay():
    history = small_boxes.run(**small_boxes.UNDERFLOW)
    assert history.finite
    assert history.zero_share[0] == 1.0
    assert not history.moved


def test_the_same_weight_changes_nothing_in_fp32():
    history = small_boxes.run(**small_boxes.UNDERFLOW, dtype=torch.float32, steps=100)
    assert history.loss[-1] == pytest.approx(exact(), rel=1e-3)


@pytest.mark.parametrize("fix", failure.UNDERFLOW_FIXES, ids=lambda f: f.name)
def test_what_cures_the_underflow_agrees_with_float64_and_what_does_not_moves_nothing(fix):
    history = small_boxes.run(**{**small_boxes.UNDERFLOW, **fix.knobs}, steps=100)
    assert history.moved is fix.cures
    if fix.cures:
        assert history.loss[-1] == pytest.approx(exact(), rel=0.05)


def test_a_scale_that_is_too_large_at_the_start_settles_after_four_skips():
    history = small_boxes.run(loss_weight=10, divide_first=True, scaler=True, steps=30)
    assert history.skipped == 4
    assert history.scales[4:] == [4096.0] * 27
    assert history.moved


def test_activation_gradients_are_kept_and_leave_the_random_state_alone():
    before = torch.get_rng_state()
    gradients = activation_gradients(50)
    assert gradients.shape == (66560,)
    assert activation_gradients(50) is gradients
    assert torch.equal(torch.get_rng_state(), before)


def test_more_training_puts_more_gradients_below_fp16():
    lost = [(g[g != 0].half() == 0).double().mean().item() for g in map(activation_gradients, (0, 50, 200))]
    assert lost == sorted(lost)
    assert 0.25 < lost[-1] < 0.32


def test_the_first_scales_are_written_out():
    lines = small_boxes.with_fix("grad_scaler", steps=3).scale_steps(2)
    assert lines == "step 0   65,536 times\nstep 1   32,768 times"


def test_the_verdict_says_what_became_of_a_run():
    assert small_boxes.run().verdict() == "Not finite from step 0 on, first in the squares. Nothing was learnt."
    skipped = small_boxes.with_fix("grad_scaler", steps=8).verdict()
    assert skipped == "Not finite from step 0 on, first in the squares. 8 steps were skipped. Nothing was learnt."
    assert small_boxes.with_fix("bf16").verdict() == "Every one of 30 steps is finite. The loss fell."
    assert small_boxes.run(**small_boxes.UNDERFLOW).verdict() == "Every one of 30 steps is finite. Nothing was learnt."


def test_every_fix_changes_one_knob():
    assert all(len(fix.knobs) == 1 for fix in (*small_boxes.FIXES, *failure.UNDERFLOW_FIXES))


def test_the_suspects_it_names_are_in_the_table():
    assert [suspects.get(name).name for name in small_boxes.SUSPECTS] == list(small_boxes.SUSPECTS)


@pytest.mark.parametrize("scale", [1.0, 8.0, 1024.0, 2.0**30])
@pytest.mark.parametrize(("fmt", "dtype"), [(FP16, torch.float16), (BF16, torch.bfloat16)], ids=["fp16", "bf16"])
def test_the_shares_are_those_of_a_real_conversion(fmt, dtype, scale):
    gradients = activation_gradients(200)
    kept = (gradients[gradients != 0] * scale).to(dtype)
    result = spread(gradients, fmt, scale)
    assert result.lost == (kept == 0).double().mean().item()
    assert result.over == kept.isinf().double().mean().item()


def test_the_bars_hold_every_gradient():
    assert sum(HalfLab(steps=0).result.heights) == pytest.approx(100)


def test_a_larger_scale_saves_more():
    lab = HalfLab()
    before = lab.result.lost
    lab.set(scale=8)
    assert 0 < lab.result.lost < before / 3


def test_the_summary_has_two_digits():
    lab = HalfLab()
    assert lab.summary(lab.result) == "lost below 29 %, above 0 %"


def test_the_sentence_says_what_a_scaler_would_do_with_an_overflow():
    lab = HalfLab(scale=2.0**30)
    assert "halves the scale" in lab.sentence(lab.result)


def test_e4m3_has_no_infinity_and_says_nan():
    lab = HalfLab(dtype="float8_e4m3fn", scale=2.0**30)
    assert "become nan" in lab.sentence(lab.result)
    assert "nan" in lab.chart(lab.result).words()


def test_every_button_can_be_run():
    lab = HalfLab()
    start = dict(lab.values)
    for button in lab.buttons:
        lab.set(**{**start, **button.sets})


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
