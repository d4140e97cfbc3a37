"""Hears backward calls and the loss scaler wherever the program makes them, for one listener at a time.

``Tensor.backward`` goes through ``torch.autograd.backward``, so one seam is enough for both. The seams are put in when
the first listener comes and taken out when the last one leaves; the innermost listener is the one that hears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.amp import GradScaler


class Listener:
    """What a listener can override. Each may raise; the program then sees the exception at its own line.
    `after_backward` is called only while `hears_after` is set."""

    hears_after = False

    def before_backward(self, losses: Sequence[Tensor]) -> None:
        """`losses` are what backward is about to run from; no graph has run yet."""

    def after_backward(self) -> None:
        """The graph ran; gradients are in place."""

    def on_grad(self, outputs: Sequence[Tensor], create_graph: bool) -> None:
        """``torch.autograd.grad`` is about to run from `outputs`."""

    def on_scale(self, scaler: GradScaler, outputs: object) -> None:
        """`outputs` are about to be multiplied by the loss scale."""

    def on_scaler_step(self, scaler: GradScaler, optimizer: torch.optim.Optimizer, stepped: bool) -> None:
        """``scaler.step`` returned; `stepped` is False where it skipped the optimizer."""

    def on_scaler_update(self, scaler: GradScaler) -> None:
        """``scaler.update`` returned."""


_listeners: list[Listener] = []
_undo: list[Callable[[], None]] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Lets `listener` hear everything until the block ends, however it ends."""
    start(listener)
    try:
        yield
    finally:
        stop(listener)


def start(listener: Listener) -> None:
    if not _listeners:
        _put_in()
    _listeners.append(listener)


def stop(listener: Listener) -> None:
    """Ends `listener`'s turn; one that left already is ignored."""
    if listener in _listeners:
        _listeners.remove(listener)
        if not _listeners:
            while _undo:
                _undo.pop()()


def innermost() -> Listener | None:
    """The listener that hears at this moment."""
    return _listeners[-1] if _listeners else None


def _put_in() -> None:
    _replace(torch.autograd, "backward", _backward(torch.autograd.backward))
    _replace(torch.autograd, "grad", _grad(torch.autograd.grad))
    _replace(GradScaler, "scale", _scale(GradScaler.scale))
    _replace(GradScaler, "step", _scaler_step(GradScaler.step))
    _replace(GradScaler, "update", _scaler_update(GradScaler.update))


def _replace(owner: object, name: str, value: Callable) -> None:
    """Puts `value` in place of ``owner.name``. If someone else has replaced it since, it is left to them when we go:
    ours then only passes calls on."""
    plain = getattr(owner, name)
    value.__name__, value.__doc__ = plain.__name__, plain.__doc__
    setattr(owner, name, value)
    _undo.append(lambda: setattr(owner, name, plain) if getattr(owner, name) is value else None)


def _backward(plain: Callable) -> Callable:
    def backward(tensors, *args, **kwargs):
        if not _listeners:
            return plain(tensors, *args, **kwargs)
        listener = _listeners[-1]
        listener.before_backward((tensors,) if isinstance(tensors, Tensor) else tuple(tensors))
        plain(tensors, *args, **kwargs)
        if listener.hears_after:
            listener.after_backward()

    return backward


def _grad(plain: Callable) -> Callable:
    def grad(outputs, *args, **kwargs):
        if _listeners:
            made = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
            _listeners[-1].on_grad(made, bool(kwargs.get("create_graph", False)))
        return plain(outputs, *args, **kwargs)

    return grad


def _scale(plain: Callable) -> Callable:
    def scale(self, outputs):
        if _listeners and self.is_enabled():
            _listeners[-1].on_scale(self, outputs)
        return plain(self, outputs)

    return scale


def _scaler_step(plain: Callable) -> Callable:
    def step(self, optimizer, *args, **kwargs):
        if not _listeners or not self.is_enabled():
            return plain(self, optimizer, *args, **kwargs)
        ran = []
        handle = optimizer.register_step_post_hook(lambda *_: ran.append(True))
        try:
            return plain(self, optimizer, *args, **kwargs)
        finally:
            handle.remove()
            if _listeners:
                _listeners[-1].on_scaler_step(self, optimizer, bool(ran))

    return step


def _scaler_update(plain: Callable) -> Callable:
    def update(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        if _listeners and self.is_enabled():
            _listeners[-1].on_scaler_update(self)

    return update
