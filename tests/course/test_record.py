import math

import torch

from nanlab.course.history import History
from nanlab.course.record import largest, record

one = torch.ones(2)


def test_a_finite_step_is_recorded_and_called_finite():
    history = History()
    assert record(history, 0, [one], one.sum(), [one], [one])
    assert (history.finite, history.loss, history.gradient_norm) == (True, [2.0], [math.sqrt(2)])


def test_the_first_bad_quantity_in_the_order_of_the_step_is_named():
    history = History()
    assert not record(history, 7, [one * math.inf], one.sum() * math.nan, [one], [one])
    assert (history.first_bad_step, history.first_bad_where) == (7, "activation")


def test_the_largest_magnitude_keeps_a_nan_and_passes_over_an_empty_tensor():
    assert math.isnan(largest([one, one * math.nan]))
    assert largest([torch.empty(0), -3 * one]) == 3.0


def test_a_gradient_norm_beyond_fp32_is_still_a_number():
    history = History()
    assert record(history, 0, [one], one.sum(), [one * 1e30], [one])
