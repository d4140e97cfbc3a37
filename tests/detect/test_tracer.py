"""The tracer: detaches whatever happens, keeps no tensors alive, knows phases and places."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from nanlab.detect.origin.explain import explain
from nanlab.detect.replay.hunt import hunt
from nanlab.detect.trace.provenance import Tags, span
from nanlab.detect.trace.tracer import Tracer


def attached():
    """Everything that a tracer hangs itself into, as it is now."""
    return (
        torch._C._len_torch_function_stack(), len(_get_current_dispatch_mode_stack()),
        len(torch_module._global_forward_hooks), len(torch_module._global_forward_pre_hooks),
        len(torch_optimizer._global_optimizer_pre_hooks), len(torch_optimizer._global_optimizer_post_hooks),
        torch.autograd.backward, torch.autograd._engine_run_backward, torch.autograd.Function.__dict__["apply"],
    )  # fmt: skip


def raises(error):
    def step():
        model = nn.Linear(2, 1)
        model(torch.ones(1, 2)).sum().backward()
        raise error

    return step


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_it_detaches_when_the_step_raises(error):
    before = attached()
    with pytest.raises(type(error)):
        hunt(raises(error))
    assert attached() == before


def test_it_detaches_when_backward_or_a_custom_function_raises():
    class Refuses(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise RuntimeError("no backward")

    before, x = attached(), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no backward"):
        hunt(lambda: Refuses.apply(x).sum().backward())
    assert attached() == before


def test_it_detaches_when_it_finds_something():
    before, model = attached(), nn.Linear(2, 2)
    assert hunt(lambda: (model(torch.ones(1, 2)) * 0).sqrt().sum(), model).verdict == "non-finite"
    assert attached() == before


def test_it_can_be_opened_inside_another_mode():
    with torch.device("cpu"), Tracer() as tracer:
        torch.log(torch.zeros(2))
    assert tracer.program.number > 0


def test_finite_results_are_not_kept_alive():
    with Tracer() as tracer:
        result = torch.ones(1000) * 2
        seen = weakref.ref(result)
        del result
        gc.collect()
        assert seen() is None and tracer.recent is not None


def test_bad_results_are_not_kept_alive_and_their_memory_is_not_mistaken():
    with Tracer() as tracer:
        bad = torch.log(torch.zeros(1000))
        seen = weakref.ref(bad)
        del bad
        gc.collect()
        assert seen() is None
        for _ in range(50):  # storages at the address of the old one
            assert tracer.tags.of(torch.ones(1000)) == []


def test_a_step_under_the_hunt_computes_what_a_plain_step_computes():
    def train(step):
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

        def body():
            optimizer.zero_grad()
            model(torch.randn(6, 4)).pow(2).mean().backward()
            optimizer.step()

        for _ in range(3):
            step(body, model, optimizer)
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    assert torch.equal(train(lambda body, m, o: body()), train(lambda body, m, o: hunt(body, m, o)))


def test_phases_are_known_without_being_told():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), eps=0.0)
    phases = {}

    def note(tracer, name, t):
        phases[name] = tracer.tags.of(t)[0].phase

    with Tracer(model, optimizer) as tracer:
        bad = torch.log(model(torch.zeros(1, 2)) * 0)
        note(tracer, "forward", bad)
        bad.sum().backward()
        note(tracer, "backward", model.bias.grad)
        optimizer.step()
        note(tracer, "optimizer", model.bias)
    assert phases == {"forward": "forward", "backward": "backward", "optimizer": "optimizer"}


def test_several_tensors_are_explained_by_the_earliest_origin(marked):
    with Tracer() as tracer:
        first = torch.log(torch.zeros(2))  # <- here
        second = torch.ones(2) / torch.zeros(2)
        report = explain(tracer, "loss", [torch.ones(1), second, first + second])
    assert report.line == marked() and report.form == "log(0)"


def test_a_tensor_that_nothing_made_is_named_as_far_as_it_is_known():
    t = torch.tensor([float("nan")])
    with Tracer() as tracer:
        report = explain(tracer, "loss", [t])
    assert report.verdict == "non-finite" and report.form == "nan_in"


def test_a_tag_stays_with_the_part_that_is_still_bad():
    tags, t, event = Tags(), torch.zeros(4, 4), object()
    tags.wrote(t[0], event)
    tags.wrote(t[1:], None)
    assert tags.of(t) == [event] and tags.of(t[2]) == []
    tags.wrote(t, None)
    assert tags.of(t) == []


def test_a_strided_write_does_not_clear_what_lies_between():
    tags, t, event = Tags(), torch.zeros(4, 4), object()
    tags.wrote(t[:, 0], event)
    tags.wrote(t[:, 1], None)
    assert tags.of(t[:, 0]) == [event]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (lambda t: t, (0, 64, True)),
        (lambda t: t[1], (16, 32, True)),
        (lambda t: t[:, 1], (4, 56, False)),
        (lambda t: t.t(), (0, 64, True)),
        (lambda t: t[:0], (0, 0, True)),
    ],
)
def test_the_bytes_that_a_view_touches(view, expected):
    assert span(view(torch.zeros(4, 4))) == expected


def test_tags_of_memory_that_was_freed_are_forgotten(monkeypatch):
    monkeypatch.setattr("nanlab.detect.trace.provenance.MOST", 20)
    with Tracer() as tracer:
        kept = torch.log(torch.zeros(4))
        for _ in range(200):
            torch.log(torch.zeros(4))
        assert len(tracer.tags._held) <= 45 and tracer.tags.of(kept)


def test_losses_of_earlier_steps_are_let_go():
    x = torch.ones(2, requires_grad=True)
    with Tracer() as tracer:
        losses = []
        for _ in range(10):
            loss = (x * 2).sum()
            losses.append(weakref.ref(loss))
            loss.backward()
            del loss
        gc.collect()
        assert sum(ref() is not None for ref in losses) <= 4 and tracer.losses


def test_nothing_bad_to_explain_is_said_to_be_unseen():
    with Tracer() as tracer:
        report = explain(tracer, "loss", [torch.ones(2)])
    assert report.where == "loss" and report.form is None and "No watched operation" in str(report)
