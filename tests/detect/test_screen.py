"""Cheap looks never miss a value and never cry wolf; what arithmetic rules out is ruled out for good."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim import LBFGS, SGD, Adagrad, Adam, AdamW, RMSprop

from nanlab.detect.state.screen import QUIET_NORM, all_finite, can_spoil, non_finite, norm, tiny
from nanlab.detect.state.training import state_tensors

BAD = [math.nan, math.inf, -math.inf]


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=6),
    value=st.sampled_from([*BAD, 0.0, 3e38, -1e-44, 65504.0]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16]),
    data=st.data(),
)
def test_a_norm_is_finite_only_if_every_value_is(sizes, value, dtype, data):
    tensors = [torch.ones(n, dtype=dtype) for n in sizes]
    which = data.draw(st.integers(0, len(sizes) - 1))
    tensors[which][data.draw(st.integers(0, sizes[which] - 1))] = value
    bad = not bool(torch.isfinite(tensors[which]).all())
    assert bool(non_finite(tensors)) == bad
    if bad:
        assert not math.isfinite(norm(tensors))


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=6), value=st.sampled_from([*BAD, 3e38]), data=st.data())
def test_the_look_at_tiny_tensors_is_exact_and_changes_nothing(sizes, value, data):
    tensors = [torch.randn(n) for n in sizes]
    tensors[data.draw(st.integers(0, len(sizes) - 1))][0] = value
    before = [t.clone() for t in tensors]
    assert all_finite(tensors) == math.isfinite(value)
    assert all(torch.equal(a.view(torch.int32), b.view(torch.int32)) for a, b in zip(before, tensors, strict=True))
    assert all_finite([torch.ones(3)])  # what was found once is forgotten


def test_a_norm_overflows_on_finite_values_and_the_exact_look_says_so():
    assert norm([torch.full((4,), 1e30)]) == math.inf
    assert non_finite([torch.full((4,), 1e30)]) == []
    assert math.isnan(norm([]))


def test_sparse_gradients_have_a_norm():
    sparse = torch.sparse_coo_tensor([[1]], [[3.0, 4.0]], (5, 2), check_invariants=True)
    assert norm([sparse]) == pytest.approx(5.0)
    assert not tiny([nn.Parameter(torch.ones(2, dtype=torch.float64))])


def step_with(optimizer: torch.optim.Optimizer, p: nn.Parameter, gradient: float) -> bool:
    """Whether a step with this gradient leaves weights and state finite."""
    p.grad = torch.full_like(p, gradient)
    optimizer.step()
    return not non_finite([p.detach(), *state_tensors(optimizer)])


@pytest.mark.parametrize("kind", [SGD, Adam, AdamW, RMSprop, Adagrad])
@pytest.mark.parametrize("gradient", [0.0, 1e-30, 1.0, QUIET_NORM / 2])
@pytest.mark.parametrize("lr", [0.0, 1e-3, 1e6])
def test_what_is_ruled_out_does_not_happen_in_a_hundred_steps(kind, gradient, lr):
    p = nn.Parameter(torch.ones(2))
    optimizer = kind([p], lr=lr, weight_decay=0.0)
    assert not can_spoil(optimizer, abs(gradient) * 2)
    assert all(step_with(optimizer, p, gradient) for _ in range(100))


@pytest.mark.parametrize(
    ("kind", "settings_", "gradient"),
    [
        (Adam, {"eps": 0.0}, 0.0),
        (SGD, {"lr": 1e38}, 100.0),
        (Adam, {}, 1e21),
        (RMSprop, {"eps": 0.0}, 0.0),
        (SGD, {}, 1e38),
    ],
)
def test_what_can_happen_is_looked_for(kind, settings_, gradient):
    p = nn.Parameter(torch.ones(2))
    optimizer = kind([p], **{"lr": 10.0, **settings_})
    assert can_spoil(optimizer, abs(gradient) * 2)
    assert not step_with(optimizer, p, gradient)


def test_unknown_rules_centered_rmsprop_and_strong_decay_are_never_ruled_out():
    p = nn.Parameter(torch.ones(2))
    assert can_spoil(LBFGS([p]), 1.0)
    assert can_spoil(RMSprop([p], centered=True), 1.0)
    assert can_spoil(AdamW([p], lr=10.0, weight_decay=1.0), 1.0)
    assert can_spoil(SGD([p], lr=0.1), math.nan)
