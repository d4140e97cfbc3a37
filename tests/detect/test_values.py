"""Counting what is not finite."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nanlab.detect.state.values import bad_mask, count, first_true, is_finite, largest, number

BAD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@st.composite
def spoilt(draw):
    """A tensor of any small shape and dtype, and the bad values planted in it, by flat position."""
    shape = draw(st.lists(st.integers(1, 4), min_size=0, max_size=3))
    size = math.prod(shape)
    planted = draw(st.dictionaries(st.integers(0, size - 1), st.sampled_from(sorted(BAD)), max_size=size))
    t = torch.linspace(-3, 3, size).to(draw(st.sampled_from(DTYPES)))
    for position, name in planted.items():
        t[position] = BAD[name]
    return t.reshape(shape), planted


@given(spoilt())
@settings(max_examples=200, deadline=None)
def test_any_tensor_with_bad_values_is_described_exactly(case):
    t, planted = case
    counts = count(t)
    if not planted:
        assert counts is None and is_finite(t)
        return
    kinds = list(planted.values())
    assert (counts.nan, counts.posinf, counts.neginf) == tuple(kinds.count(k) for k in ("nan", "inf", "-inf"))
    assert counts.total == t.numel() and counts.bad == len(planted) and not is_finite(t)
    first = [int(i) for i in torch.unravel_index(torch.tensor(min(planted)), t.shape)] if t.dim() else []
    assert list(counts.element) == first
    nans = [p for p, kind in planted.items() if kind == "nan"]
    assert (counts.nan_element is None) == (not nans)


@given(spoilt())
@settings(max_examples=50, deadline=None)
def test_a_transposed_view_is_counted_like_a_copy_of_it(case):
    t, _ = case
    view = t.transpose(0, -1) if t.dim() > 1 else t
    assert count(view) == count(view.clone())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_sum_that_overflows_over_finite_values_is_no_finding(dtype):
    t = torch.full((8,), torch.finfo(dtype).max, dtype=dtype)
    assert is_finite(t) and count(t) is None


def test_fp16_is_added_up_in_a_wider_format():
    assert is_finite(torch.full((70_000,), 2.0, dtype=torch.float16))


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.float8_e4m3fn])
def test_fp8_is_counted(dtype):
    t = torch.tensor([1.0, math.nan, 2.0]).to(dtype)
    assert count(t).nan == 1 and count(t).element == (1,)


def test_complex_values_count_once_whichever_part_is_bad():
    t = torch.complex(torch.tensor([1.0, math.nan, math.inf, 0.0]), torch.tensor([0.0, 1.0, math.nan, -math.inf]))
    counts = count(t)
    assert (counts.nan, counts.posinf, counts.neginf, counts.total) == (2, 0, 1, 4)


def test_sparse_tensors_are_counted_over_their_stored_values():
    t = torch.sparse_coo_tensor([[0, 2]], [1.0, math.nan], (4,), check_invariants=True)
    assert count(t).nan == 1 and count(t).total == 2


NOTHING_TO_COUNT = [torch.tensor([1, 2]), torch.tensor([True]), torch.empty(0), torch.empty(2, device="meta")]


@pytest.mark.parametrize("t", NOTHING_TO_COUNT)
def test_integers_booleans_empty_and_meta_tensors_are_finite(t):
    assert is_finite(t)


def test_masks_tell_nan_from_infinity():
    t = torch.tensor([math.nan, math.inf, 1.0])
    assert bad_mask(t).tolist() == [True, True, False] and bad_mask(t, nan_only=True).tolist() == [True, False, False]


def test_the_largest_finite_magnitude_leaves_the_bad_values_out():
    assert largest(torch.tensor([math.inf, -3.0, 2.0])) == 3.0 and largest(torch.tensor([math.nan])) == 0.0


def test_numbers_that_json_cannot_hold_become_strings():
    assert [number(v) for v in (1.5, math.nan, -math.inf, True, None, 1j)] == [1.5, "nan", "-inf", True, None, "1j"]


def test_the_first_true_of_a_mask_is_in_row_major_order():
    assert first_true(torch.tensor([[False, False], [True, True]])) == (1, 0)
