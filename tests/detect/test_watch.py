"""``watch`` for code that has no loader to wrap."""

import pytest
import torch
from torch import nn

from nanlab import NonFiniteError, watch


class Unit(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.drop = nn.Linear(3, 3), nn.Dropout(0.3)

    def forward(self, x):
        h = self.drop(self.inner(x))
        return h / h.norm(dim=-1, keepdim=True)  # <- here


def fit(model, optimizer, data):
    for x in data:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


def test_what_goes_bad_inside_the_model_gets_its_line_and_the_same_dropout(marked):
    model = Unit()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(NonFiniteError) as caught, watch(model, optimizer):
        for _ in range(500):
            before = [p.detach().clone() for p in model.parameters()]
            fit(model, optimizer, [torch.randn(6, 3)])
    assert (caught.value.report.form, caught.value.report.where) == ("0/0", "forward")
    assert caught.value.report.line == marked(Unit)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_it_detaches_after_a_failure_after_an_exception_and_after_the_block():
    plain, model = torch.autograd.backward, nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def clean():
        return (
            torch.autograd.backward is plain
            and not model._forward_pre_hooks
            and not optimizer._optimizer_step_pre_hooks
        )

    with watch(model, optimizer):
        assert not clean()
    assert clean()
    with pytest.raises(KeyError), watch(model, optimizer):
        raise KeyError
    assert clean()
    with pytest.raises(NonFiniteError), watch(model, optimizer):
        fit(model, optimizer, [torch.full((1, 3), float("inf"))])
    assert clean()


def test_what_goes_bad_after_the_model_gets_its_place_and_says_what_would_find_the_line():
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(NonFiniteError, match="hunt") as caught, watch(model, optimizer):
        (model(torch.randn(2, 3)) * 0).abs().sum().sqrt().backward()
        optimizer.step()
    assert caught.value.report.where == "gradient"


def test_an_optimizer_that_spoils_the_weights_is_caught_in_its_step():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), eps=0.0)
    with pytest.raises(NonFiniteError, match="spoilt") as caught, watch(model, optimizer):
        model(torch.ones(1, 3))[:, 0].sum().backward()
        optimizer.step()
    assert caught.value.report.form == "0/0"


def test_a_loop_without_an_optimizer_is_watched_too():
    model = nn.Linear(1, 1, bias=False)
    with pytest.raises(NonFiniteError), watch(model):
        (model(torch.zeros(1, 1)) * 0).sqrt().sum().backward()


def test_weights_are_looked_at_on_entering():
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight[0, 1] = float("inf")
    with pytest.raises(NonFiniteError, match="before the first step"), watch(model):
        pass


def test_a_healthy_run_keeps_its_trajectory_and_its_scene_is_none_of_its_business():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as watching:
        fit(model, optimizer, [torch.randn(4, 3) for _ in range(5)])
    assert [p.step for p in watching.trajectory.points] == [0, 1, 2, 3, 4]
