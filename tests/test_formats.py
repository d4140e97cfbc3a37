import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nanlab import formats
from nanlab.formats import BF16, FORMATS, FP8_E4M3, FP16, FP32, FP64

every_format = pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: f.name)
small_format = pytest.mark.parametrize("fmt", [BF16, FP16, formats.FP8_E5M2, FP8_E4M3], ids=lambda f: f.name)


@every_format
def test_limits_derived_from_the_bit_widths_are_those_of_torch(fmt):
    info = torch.finfo(getattr(torch, fmt.torch_name))
    assert fmt.max == info.max
    assert fmt.smallest_normal == info.smallest_normal
    assert fmt.eps == info.eps
    assert fmt.bits == info.bits


@small_format
def test_every_bit_pattern_decodes_as_torch_decodes_it(fmt):
    width = {8: torch.uint8, 16: torch.int16}[fmt.bits]
    codes = torch.arange(2**fmt.bits).to(width)
    decoded = codes.view(getattr(torch, fmt.torch_name)).double().tolist()
    ours = [fmt.from_bits(format(code, f"0{fmt.bits}b")) for code in range(2**fmt.bits)]
    assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(ours, decoded, strict=True))


@small_format
def test_bit_fields_and_from_bits_are_inverse_for_every_finite_value(fmt):
    for code in range(2**fmt.bits):
        value = fmt.from_bits(format(code, f"0{fmt.bits}b"))
        if math.isfinite(value):
            assert fmt.from_bits(str(fmt.bit_fields(value))) == value


@small_format
def test_neighbours_step_through_the_values_in_order(fmt):
    finite = (fmt.from_bits(format(code, f"0{fmt.bits}b")) for code in range(2**fmt.bits))
    values = sorted({value for value in finite if math.isfinite(value)})
    assert [fmt.up(v) for v in values[:-1]] == values[1:]
    assert [fmt.down(v) for v in values[1:]] == values[:-1]


@given(value=st.floats(width=64, allow_nan=False))
@pytest.mark.parametrize("fmt", [FP32, BF16, FP16], ids=lambda f: f.name)
def test_rounding_agrees_with_torch(fmt, value):
    if fmt is not FP32:
        value = FP32.round(value)  # torch rounds a float64 to float32 on its way to half, which is one rounding more
    assert fmt.round(value) == torch.tensor(value, dtype=torch.float64).to(getattr(torch, fmt.torch_name)).item()


def test_torch_rounds_a_float64_twice_on_its_way_to_fp16():
    assert FP16.round(65519.999999) == 65504
    assert torch.tensor(65519.999999, dtype=torch.float64).half().item() == math.inf


def test_fp16_ends_at_65504_and_rounds_to_infinity_from_65520():
    assert FP16.max == 65504
    assert FP16.overflows_from == 65520
    assert FP16.round(65519) == 65504
    assert FP16.round(65520) == math.inf
    assert FP16.up(65504) == math.inf


def test_e4m3_has_no_infinity_and_overflows_to_nan():
    assert FP8_E4M3.max == 448
    assert math.isnan(FP8_E4M3.round(1e6))
    assert math.isnan(FP8_E4M3.up(448))


def test_the_exp_limits_are_those_the_course_prints():
    assert [f"{f.exp_limit:.4g}" for f in (FP16, FP32, FP64)] == ["11.09", "88.72", "709.8"]


@pytest.mark.parametrize(("fmt", "held"), [(FP32, True), (BF16, True), (FP16, False)], ids=["fp32", "bf16", "fp16"])
def test_an_epsilon_of_1e_8_is_zero_in_fp16_alone(fmt, held):
    assert fmt.holds_epsilon(1e-8) is held
    assert (torch.tensor(1e-8).to(getattr(torch, fmt.torch_name)).item() > 0) is held


def test_a_square_overflows_just_above_its_limit():
    x = torch.tensor(FP16.square_limit, dtype=torch.float16)
    assert torch.isfinite(x * x)
    assert torch.isinf((x + 1) * (x + 1))


def test_a_sum_overflows_above_its_limit():
    assert FP16.sum_limit(4) * 4 == FP16.max


def test_a_format_is_found_by_its_dtype_and_by_either_name():
    assert formats.get(torch.float16) is formats.get("fp16") is formats.get("float16") is FP16


def test_an_unknown_format_names_those_there_are():
    with pytest.raises(KeyError, match="fp8 E4M3"):
        formats.get("fp4")


def test_bits_of_another_length_are_turned_down():
    with pytest.raises(ValueError, match="16 binary digits"):
        FP16.from_bits("0101")


def test_the_widest_format_is_python_s_own_float():
    assert FP64.round(0.1) == 0.1
    assert FP64.up(1.0) == math.nextafter(1.0, math.inf)
