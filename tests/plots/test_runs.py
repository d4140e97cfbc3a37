"""Charts of training runs carry the format's limit and the first bad step."""

from decimal import Decimal

import torch

from nanlab.lessons import loss_explosion
from nanlab.plots import format_limit


def test_the_explosion_is_drawn_with_its_limit_and_its_first_bad_step():
    chart = loss_explosion.run().chart()
    assert [mark.label for mark in chart.marks] == ["loss inf at step 3"]
    assert [limit.label for limit in chart.limits] == ["fp32 max 3.403e+38"]


def test_a_finite_run_has_no_bad_step():
    assert loss_explosion.run(lr=0.001).marks() == ()


def test_limits_are_the_largest_values_of_the_formats():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        limit = format_limit(dtype)
        said = Decimal(limit.label.split()[-1].replace(",", ""))  # as a float, 1.798e+308 would be inf
        assert abs(said / Decimal(limit.value) - 1) < Decimal("1e-3")
        assert limit.value == torch.finfo(dtype).max
