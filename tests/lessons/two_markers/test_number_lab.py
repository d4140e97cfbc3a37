import pytest
import torch

from nanlab.lessons.two_markers.number_lab import SHOWN, NumberLab, apply

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
