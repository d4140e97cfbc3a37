import pytest
import torch

from nanlab.formats import BF16, FP16
from nanlab.lessons.small_boxes.gradients import activation_gradients
from nanlab.lessons.small_boxes.lab import HalfLab, spread


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
