"""Where in a step the hunt stops, and faults that the optimizer, its state or an update by hand makes."""

import math

import pytest
import torch
from torch import nn

from nanlab.detect.replay.hunt import hunt


def dead_model():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    with torch.no_grad():
        model[0].bias -= 100
    return model


def state_of(model, optimizer):
    return [p.detach().clone() for p in model.parameters()], optimizer.state_dict()["state"].copy()


@pytest.mark.parametrize("bad", ["loss", "gradient"])
def test_the_step_is_stopped_before_the_optimizer_moves(bad):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    before, _ = state_of(model, optimizer)
    ran_on = []

    def step():
        optimizer.zero_grad()
        h = model(torch.randn(3, 4)) * 0
        loss = (h / h).mean() if bad == "loss" else h.sqrt().sum()
        loss.backward()
        optimizer.step()
        ran_on.append(True)

    report = hunt(step, model, optimizer, step=7)
    assert (report.sink, report.step) == (bad, 7) and not ran_on
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)) and not optimizer.state


def test_a_healthy_step_is_made():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()

    def step():
        model(torch.randn(3, 4)).mean().backward()
        optimizer.step()

    assert hunt(step, model, optimizer).verdict == "finite" and not torch.equal(before, model.weight)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.Adam(p, eps=0.0, foreach=False),
        lambda p: torch.optim.Adam(p, eps=0.0, foreach=True),
        lambda p: torch.optim.AdamW(p, eps=0.0, fused=True),
        lambda p: torch.optim.RMSprop(p, eps=0.0),
        lambda p: torch.optim.Adagrad(p, eps=0.0),
    ],
)
def test_an_optimizer_without_an_epsilon_divides_zero_by_zero(make, marked):
    model = dead_model()
    optimizer = make(model.parameters())

    def step():
        model(torch.randn(3, 4)).mean().backward()
        optimizer.step()  # <- here

    report = hunt(step, model, optimizer)
    assert (report.where, report.form, report.module, report.line) == ("weights", "0/0", "0", marked(step))


@pytest.mark.parametrize("foreach", [False, True])
def test_a_second_moment_that_overflows_is_found_in_the_state(foreach, marked):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), foreach=foreach)

    def step():
        (model(torch.ones(3, 4)) * 1e22).mean().backward()
        optimizer.step()  # <- here

    report = hunt(step, model, optimizer)
    assert (report.where, report.form, report.suspect) == ("optimizer_state", "overflow", "exploding_gradients")
    assert report.line == marked(step)


def test_optimizer_state_that_was_bad_before_is_named():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(2, 4)).mean().backward()
    optimizer.step()
    optimizer.state[model.weight]["exp_avg"][0, 1] = math.nan

    def step():
        optimizer.zero_grad()
        model(torch.randn(2, 4)).mean().backward()
        optimizer.step()

    report = hunt(step, model, optimizer)
    assert (report.where, report.form, report.suspect) == ("optimizer_state", "nan_in", "poisoned_state")
    assert report.op == "nan in exp_avg of weight" and report.element == [0, 1]


def test_an_update_by_hand_that_overflows_is_found_in_the_weights(marked):
    model = nn.Linear(4, 1)

    def step():
        model(torch.ones(2, 4)).mean().backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= p.grad * 1e30 * 1e30  # <- here

    report = hunt(step, model)
    assert (report.where, report.form, report.line) == ("weights", "overflow", marked(step))


def test_a_closure_is_stopped_inside(marked):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure():
        loss = torch.log(model(torch.ones(2, 4)).mean() * 0)  # <- here
        loss.backward()
        return loss

    report = hunt(lambda: optimizer.step(closure), model, optimizer)
    assert (report.where, report.form, report.line) == ("loss", "log(0)", marked(closure))


def test_the_second_of_two_backward_calls_is_found(marked):
    model = nn.Linear(4, 1)

    def step():
        for factor in (1.0, 0.0):
            part = (model(torch.ones(2, 4)) * factor).sqrt()  # <- here
            (part.sum() if factor == 0 else part.abs().sum() * 0).backward()

    with torch.no_grad():
        model.weight.abs_()
        model.bias.abs_()
    report = hunt(step, model)
    assert (report.form, report.line) == ("deriv_of_sqrt_at_0", marked(step))


def test_a_graph_that_is_kept_can_be_walked_twice(marked):
    model = nn.Linear(4, 1)

    def step():
        h = model(torch.ones(2, 4))
        h.mean().backward(retain_graph=True)
        (h * 0).sqrt().sum().backward()  # <- here

    assert hunt(step, model).line == marked(step)


def test_clipping_an_infinite_gradient_is_not_the_origin(marked):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        (model(torch.ones(2, 4)) * 0).sqrt().sum().backward()  # <- here
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    assert hunt(step, model, optimizer).line == marked(step)


def test_two_optimizers_are_both_watched(marked):
    one, two = nn.Linear(4, 4), nn.Linear(4, 1)
    first, second = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (one, two))

    def step():
        two(one(torch.ones(2, 4)).detach()).mean().backward()
        second.step()
        first.zero_grad()
        torch.log(two(one(torch.ones(2, 4))) * 0).sum().backward()  # <- here
        first.step()

    assert hunt(step, nn.ModuleList([one, two]), [first, second]).line == marked(step)


def test_a_scaler_that_skips_a_step_is_no_failure_of_its_own():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")

    def step():
        scaler.scale(model(torch.randn(2, 4)).mean()).backward()
        scaler.step(optimizer)
        scaler.update()

    assert hunt(step, model, optimizer).verdict == "finite"


def test_what_the_step_raises_passes_through():
    with pytest.raises(KeyError, match="mine"):
        hunt(lambda: {}["mine"])


def test_a_buffer_that_turned_bad_is_found_although_the_loss_is_fine(marked):
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            h = self.fc(x)
            self.mean.mul_(0.9).add_(h.detach()[x[:, 0] > 0].mean(0))  # <- here
            return h

    model = Average()
    report = hunt(lambda: model(-torch.ones(3, 4)).mean(), model)
    assert (report.sink, report.where, report.form) == ("buffer", "forward", "0/0 (mean of empty)")
    assert report.line == marked(Average)


def test_running_statistics_that_overflow_are_found():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    report = hunt(lambda: model(torch.randn(6, 4) * 1e25).mean(), model)
    assert (report.where, report.form, report.module) == ("forward", "overflow", "1")


def test_a_buffer_that_a_mask_is_written_to_raises_no_alarm():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.register_buffer("mask", torch.zeros(4))

        def forward(self, x):
            self.mask[2] = -math.inf
            return torch.softmax(self.fc(x) + self.mask, -1)

    model = Masked()
    assert hunt(lambda: model(torch.ones(3, 4)).mean(), model).verdict == "finite"


def test_a_frozen_parameter_that_holds_a_mask_raises_no_alarm():
    model = nn.Linear(4, 4)
    model.mask = nn.Parameter(torch.full((4, 4), -math.inf).triu(1), requires_grad=False)
    report = hunt(lambda: torch.softmax(model(torch.ones(4, 4)) + model.mask, -1).mean(), model)
    assert report.verdict == "finite"


def test_a_step_that_the_scaler_skipped_is_reported_with_that_said():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")

    def step():
        scaler.scale((model(torch.ones(2, 4)) * 0).sqrt().sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    report = hunt(step, model, optimizer)
    assert report.where == "gradient" and any("skipped the step by itself" in note for note in report.notes)
