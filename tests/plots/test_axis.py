"""Axes say where a value lies and which values are named."""

import math
import sys

import pytest

from nanlab.plots.axis import Axis, linear, logarithmic


def test_a_log_axis_of_whole_decades_shows_all_positive_values():
    axis = logarithmic([900.1, 1.541e17, math.inf, math.nan, 0.0])
    assert (axis.low, axis.high) == (2.0, 18.0)
    assert axis.part(1e10) == pytest.approx(0.5)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, -math.inf, math.nan])
def test_a_log_axis_has_no_place_for_what_is_not_finite_and_positive(value):
    assert logarithmic([1.0, 10.0]).part(value) is None
    assert not logarithmic([1.0, 10.0]).shows(value)


def test_the_largest_fp64_fits_on_an_axis():
    axis = logarithmic([1.0, sys.float_info.max])
    assert axis.high == 309.0
    assert len(axis.ticks()) <= 7


def test_short_log_axes_are_labelled_in_plain_numbers_and_long_ones_in_powers_of_ten():
    assert [label for _, label in logarithmic([20.0, 900.0]).ticks()] == ["10", "100", "1000"]
    assert [label for _, label in logarithmic([1e-5, 1e5]).ticks()] == ["10⁻⁴", "10⁻²", "10⁰", "10²", "10⁴"]


def test_a_linear_axis_has_round_ticks_and_room_at_both_ends():
    axis = linear([0.0, 8.0])
    assert axis.low < 0 and axis.high > 8
    assert [label for _, label in axis.ticks()] == ["0", "2", "4", "6", "8"]


@pytest.mark.parametrize("values", [[], [3.0], [math.nan], [5.0, 5.0], [-1e-9, 1e-9]])
@pytest.mark.parametrize("make", [linear, logarithmic])
def test_any_values_give_an_axis_with_a_length_and_a_few_ticks(make, values):
    axis = make(values)
    assert axis.high > axis.low
    assert 1 <= len(axis.ticks()) <= 11


def test_values_outside_are_put_at_the_end_and_are_not_shown():
    axis = Axis(0.0, 10.0)
    assert axis.part(20.0) == 1.0 and not axis.shows(20.0)


def test_a_plain_log_axis_says_its_numbers_in_words():
    axis = logarithmic([1.0, 1e38], plain=True)
    assert [label for _, label in axis.ticks()][:3] == ["1", "1 million", "1 and 12 zeros"]
    small = [label for _, label in logarithmic([1e-5, 1e5], plain=True).ticks(12)]
    assert small[0] == "0.00001" and small[-1] == "100,000"
