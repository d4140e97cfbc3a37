"""Interventions: a patched operand, a sample left out, double precision; and everything put back afterwards."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nanlab.detect.replay.confirm import confirm
from nanlab.detect.replay.hunt import hunt
from nanlab.detect.state.checkpoint import keep


def small(outputs=4):
    return nn.Linear(4, outputs)


def hunted(loss, model, batch=None, optimizer=None):
    report = hunt(loss, model, optimizer, batch, confirm=True)
    assert report.verdict == "non-finite"
    return report


@pytest.mark.parametrize(
    "make",
    [
        lambda h: (h * 0) / (h * 0),
        lambda h: torch.log(h * 0),
        lambda h: (h * 0).sqrt(),
        lambda h: (h * 0 + 1).acos(),
        lambda h: (h * 0 + 1).acosh(),
        lambda h: torch.softmax(h.masked_fill(torch.ones(4, dtype=torch.bool), -math.inf), -1),
        lambda h: torch.exp(h.abs() * 1000 + 1000),
        lambda h: torch.logdet(-torch.diag(h[0].abs() + 1) * torch.tensor([1.0, -1, -1, -1])),
        lambda h: h[:0].mean(),
        lambda h: F.cross_entropy(h, torch.full((3,), -100)),
        lambda h: F.layer_norm(h * 0, (4,), eps=0.0),
        lambda h: h / torch.zeros(3, 1, dtype=torch.long),
        lambda h: (h * 0).pow(-0.5),
    ],
)
def test_a_patched_operand_makes_the_step_finite(make):
    model, x = small(), torch.randn(3, 4)
    assert "operand patched" in hunted(lambda: make(model(x)).mean(), model).confirmed_by


def test_patching_another_line_would_not_have_done(monkeypatch):
    model, x = small(), torch.randn(3, 4)

    def loss():
        h = model(x) * 0
        return (h / h).mean()

    report = hunt(loss, model)
    report.target = type(report.target)(type(report.target.place)("elsewhere.py", 1, "f"), "div", "div")
    assert confirm(report, loss, model).confirmed_by == []


def test_the_guilty_sample_is_left_out_and_named():
    model, x = small(), torch.randn(8, 4)
    x[5] = 0
    model.bias.data.zero_()
    report = hunted(lambda: (model(x) / model(x).norm(dim=-1, keepdim=True)).mean(), model, (x, torch.zeros(8)))
    assert "sample 5 left out" in report.confirmed_by


def test_float64_cures_an_overflow_and_not_a_zero_divisor():
    model, x = small(), torch.randn(3, 4)
    overflow = hunted(lambda: (model(x).abs() * 1e30 + 1e30).pow(2).mean(), model, x)
    zero = hunted(lambda: ((model(x) * 0) / (model(x) * 0)).mean(), model, x)
    assert "float64" in overflow.confirmed_by and "float64" not in zero.confirmed_by
    assert any("In float64 the step is not finite either" in note for note in zero.notes)


def test_float64_narrows_a_zero_divisor_down_to_an_underflow():
    model, x = small(), torch.randn(3, 4)

    def loss():
        tiny = (model(x).abs() + 1) * 1e-30 * 1e-30  # no exp whose zeros the hunt could have noticed
        return (tiny / tiny.sum(-1, keepdim=True)).mean()

    assert hunt(loss, model).form == "0/0" and hunted(loss, model, x).form == "0/0 (underflow)"


@pytest.mark.parametrize("bad", ["input", "weights"])
def test_bad_data_and_bad_weights_are_confirmed_by_mending_them(bad):
    model, x = small(), torch.randn(3, 4)
    (x if bad == "input" else model.weight.data)[1, 1] = math.nan
    report = hunted(lambda: model(x).mean(), model, x)
    assert report.where == bad and "operand patched" in report.confirmed_by
    assert (x if bad == "input" else model.weight).isnan().sum() == 1


class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / 2

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] / ctx.saved_tensors[0] / 2


def test_the_argument_of_a_custom_function_is_patched():
    model, x = small(), torch.randn(3, 4)
    assert "operand patched" in hunted(lambda: Half.apply(model(x) * 0).mean(), model).confirmed_by
    assert torch.autograd.Function.apply.__func__.__module__ == "torch.autograd.function"


def test_everything_is_put_back():
    model = nn.Sequential(small(), nn.BatchNorm1d(4), nn.Dropout(0.5))
    optimizer, x = torch.optim.Adam(model.parameters()), torch.randn(6, 4)
    x_before, state = x.clone(), {k: v.clone() for k, v in model.state_dict().items()}
    torch.manual_seed(3)
    random = torch.get_rng_state()

    def step():
        optimizer.zero_grad()
        (model(x) * 0).sqrt().sum().backward()
        optimizer.step()

    report = hunted(step, model, x, optimizer)
    assert report.confirmed_by and torch.equal(x, x_before) and x.dtype is torch.float32
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random) and not optimizer.state


def test_a_step_that_spoils_the_weights_is_put_back_too():
    model = nn.Sequential(small(), nn.ReLU(), small(1))
    model[0].bias.data -= 100
    optimizer, before = torch.optim.Adam(model.parameters(), eps=0.0), model[0].weight.detach().clone()

    def step():
        optimizer.zero_grad()
        model(torch.ones(2, 4)).mean().backward()
        optimizer.step()

    assert hunted(step, model, None, optimizer).confirmed_by == ["operand patched"]
    assert torch.equal(before, model[0].weight) and not optimizer.state


def test_a_kept_state_can_be_put_back_twice():
    model = small()
    before, put_back = model.weight.detach().clone(), keep(model)
    for _ in range(2):
        model.weight.data += 1
        put_back()
        assert torch.equal(model.weight, before)


def test_a_finite_report_needs_no_confirmation():
    model = small()
    report = hunt(lambda: model(torch.ones(1, 4)).mean(), model, confirm=True)
    assert report.verdict == "finite" and report.confirmed_by == []


def test_two_origins_are_mended_together_and_both_named():
    model, x = small(), torch.randn(3, 4)

    def loss():
        p = torch.sigmoid(model(x) * 0 - 1000)
        first = torch.log(p)
        second = torch.log(p * 0)
        return (first + second).mean()

    report = hunted(loss, model)
    assert "operand patched" in report.confirmed_by
    assert any("There are 2 origins" in note for note in report.notes)


def test_without_a_model_nothing_could_be_put_back():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="needs the model"):
        hunt(lambda: torch.log(x * 0).sum(), confirm=True)


def test_an_optimizer_that_was_not_given_never_steps_in_a_replay():
    model, x = small(), torch.randn(3, 4)
    optimizer, before = torch.optim.Adam(model.parameters()), model.weight.detach().clone()

    def step():
        optimizer.zero_grad()
        (model(x) * 0).sqrt().sum().backward()
        optimizer.step()

    assert hunt(step, model, confirm=True).confirmed_by == []
    assert torch.equal(before, model.weight) and not optimizer.state
