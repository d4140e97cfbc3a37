"""Which call made a node of the graph, and when the tracer may look away."""

import pytest
import torch
from torch import nn

from nanlab.detect.trace import quiet
from nanlab.detect.trace.calls import Calls, next_number
from nanlab.detect.trace.labels import Label
from nanlab.detect.trace.tracer import Tracer


def label(name):
    return Label(name, None, None, 0, 0)


def test_a_node_belongs_to_the_innermost_call_that_made_it():
    made, x = Calls(), torch.ones(2, requires_grad=True)
    outer = next_number()
    before = x + 1
    inner = next_number()
    y = before * 2
    made.note(inner, label("inner"))
    z = y - 1
    made.note(outer, label("outer"))
    found = [made.of(t.grad_fn).name for t in (before, y, z)]
    assert found == ["outer", "inner", "outer"]


def test_a_node_from_before_has_no_call():
    x = torch.ones(2, requires_grad=True) * 2
    made, start = Calls(), next_number()
    y = x * 3
    made.note(start, label("mul"))
    assert made.of(x.grad_fn) is None and made.of(y.grad_fn).name == "mul"


def test_a_call_that_makes_no_node_is_not_kept():
    made = Calls()
    made.note(next_number(), label("none"))
    assert not made._labels


def test_the_oldest_calls_are_forgotten(monkeypatch):
    monkeypatch.setattr("nanlab.detect.trace.calls.MOST", 10)
    made, x = Calls(), torch.ones(1, requires_grad=True)
    for _ in range(50):
        start = next_number()
        x = x * 1
        made.note(start, label("mul"))
    assert len(made._labels) <= 10 and made.of(x.grad_fn) is not None


def test_modes_are_off_while_quiet_and_on_again_after():
    with Tracer() as tracer:
        tracer.quiet.begin()
        torch.ones(2) * 2
        assert tracer.program.number == 0
        tracer.quiet.end()
        torch.ones(2)
        assert tracer.program.number == 1


def test_a_tracer_that_is_closed_while_quiet_leaves_nothing_off():
    with Tracer() as tracer:
        tracer.quiet.begin()
    with Tracer() as tracer:
        torch.ones(2)
    assert tracer.program.number == 1


def test_what_runs_aside_is_not_traced():
    with Tracer() as tracer, quiet.aside():
        torch.log(torch.zeros(2))
    assert tracer.program.number == 0


@pytest.mark.parametrize(
    ("make", "size", "expected"),
    [
        (lambda m: torch.optim.AdamW(m.parameters()), 1.0, True),
        (lambda m: torch.optim.AdamW(m.parameters()), 1e20, False),
        (lambda m: torch.optim.Adam(m.parameters(), eps=0.0), 1.0, False),
        (lambda m: torch.optim.SGD(m.half().parameters(), lr=0.1), 1.0, False),
        (lambda m: torch.optim.LBFGS(m.parameters()), 1.0, False),
    ],
)
def test_only_a_step_that_cannot_spoil_anything_is_left_unwatched(make, size, expected):
    assert quiet.harmless(make(nn.Linear(2, 2)), size) is expected
