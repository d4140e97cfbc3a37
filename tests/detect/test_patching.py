"""The seams in torch are there while someone listens, and gone without a trace afterwards."""

import pytest
import torch
from torch.amp import GradScaler

from nanlab.detect.patching import Listener, innermost, listening


class Ear(Listener):
    hears_after = True

    def __init__(self):
        self.heard = []

    def before_backward(self, losses):
        self.heard.append(("before", len(losses)))

    def after_backward(self):
        self.heard.append("after")

    def on_grad(self, outputs, create_graph):
        self.heard.append(("grad", create_graph))

    def on_scale(self, scaler, outputs):
        self.heard.append("scale")


def loss() -> torch.Tensor:
    return torch.ones(2, requires_grad=True).sum()


def seams() -> tuple:
    return torch.autograd.backward, torch.autograd.grad, GradScaler.scale, GradScaler.step, GradScaler.update


def test_every_way_to_backward_is_heard_once():
    ear = Ear()
    with listening(ear):
        loss().backward()
        torch.autograd.backward([loss(), loss()])
        torch.autograd.grad(loss() * 0, [torch.ones(2, requires_grad=True)], allow_unused=True)
        GradScaler("cpu").scale(loss()).backward()
    assert ear.heard == [
        ("before", 1),
        "after",
        ("before", 2),
        "after",
        ("grad", False),
        "scale",
        ("before", 1),
        "after",
    ]


def test_the_innermost_listener_hears_and_the_seams_go_with_the_last():
    before, outer, inner = seams(), Ear(), Ear()
    with listening(outer):
        with listening(inner):
            loss().backward()
            assert innermost() is inner
        assert seams() != before
        loss().backward()
    assert len(inner.heard) == len(outer.heard) == 2
    assert seams() == before
    assert innermost() is None


def test_the_seams_go_after_an_exception_too():
    before = seams()
    with pytest.raises(ZeroDivisionError), listening(Ear()):
        raise ZeroDivisionError
    assert seams() == before


def test_who_replaced_a_seam_after_us_keeps_it():
    plain = torch.autograd.backward
    with listening(Ear()):
        ours = torch.autograd.backward
        theirs = lambda *args, **kwargs: ours(*args, **kwargs)  # noqa: E731
        torch.autograd.backward = theirs
    assert torch.autograd.backward is theirs
    loss().backward()  # ours only passes the call on
    torch.autograd.backward = plain


def test_a_listener_that_raises_is_heard_at_the_programs_own_line():
    class Stern(Listener):
        def before_backward(self, losses):
            raise ArithmeticError("stop")

    with listening(Stern()), pytest.raises(ArithmeticError, match="stop") as caught:
        loss().backward()
    assert any(entry.path.name == "test_patching.py" for entry in caught.traceback)
