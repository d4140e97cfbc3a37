"""The one file that changes torch: hears, or stands around, what a training program calls.

Every function takes what is to be called and returns what ends that. A place in torch is changed when the first comes
and as it was when the last has left, in whatever order they leave; of several that stand around the same function, the
newest is outermost. ``Tensor.backward`` goes through ``torch.autograd.backward``, so one place is enough for both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch._functorch import eager_transforms
from torch.amp import GradScaler
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import dataloader

Undo = Callable[[], None]


class Listener:
    """What the innermost listener hears. Each may raise; the program then sees the exception at its own line.
    `after_backward` is called only while `hears_after` is set."""

    hears_after = False

    def before_backward(self, losses: Sequence[Tensor]) -> None:
        """`losses` are what backward is about to run from; no graph has run yet."""

    def after_backward(self) -> None:
        """The graph ran; gradients are in place."""

    def on_grad(self, outputs: Sequence[Tensor], create_graph: bool) -> None:
        """``torch.autograd.grad`` is about to run from `outputs`."""

    def after_grad(self, outputs: Sequence[Tensor], gradients: Sequence[Tensor], create_graph: bool) -> None:
        """``torch.autograd.grad`` returned `gradients`, without those that are None."""

    def on_scale(self, scaler: GradScaler, outputs: object) -> None:
        """`outputs` are about to be multiplied by the loss scale."""

    def on_scaler_step(self, scaler: GradScaler, optimizer: Optimizer, stepped: bool) -> None:
        """``scaler.step`` returned; `stepped` is False where it skipped the optimizer."""

    def on_scaler_update(self, scaler: GradScaler) -> None:
        """``scaler.update`` returned."""


class Seam:
    """A function of torch, ``owner.name``. While there are `users`, what `make` makes of both stands in its place."""

    def __init__(self, owner: object, name: str, make: Callable) -> None:
        self.owner, self.name, self.make = owner, name, make
        self.users: list = []

    def enter(self, user: object) -> Undo:
        if not self.users:
            self._plain = vars(self.owner)[self.name]
            self._ours = self.make(self._plain, self.users)
            named = getattr(self._ours, "__func__", self._ours)
            named.__name__, named.__doc__ = self.name, self._plain.__doc__
            setattr(self.owner, self.name, self._ours)
        self.users.append(user)
        return lambda: self.leave(user)

    def leave(self, user: object) -> None:
        """Ends `user`'s turn; one that left already is ignored. Where someone else has replaced our function since, it
        is left to them: ours then only passes calls on."""
        if user in self.users:
            self.users.remove(user)
            if not self.users and vars(self.owner)[self.name] is self._ours:
                setattr(self.owner, self.name, self._plain)


# what listeners hear


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Lets `listener` hear everything until the block ends, however it ends."""
    stop = listen(listener)
    try:
        yield
    finally:
        stop()


def listen(listener: Listener) -> Undo:
    """Lets `listener` hear everything, alone, until it leaves or another one comes."""
    stack = ExitStack()
    for place in _HEARD:
        stack.callback(place.enter(listener))
    _listeners.append(listener)
    stack.callback(lambda: _listeners.remove(listener) if listener in _listeners else None)
    return stack.close


def innermost() -> Listener | None:
    """The listener that hears at this moment."""
    return _listeners[-1] if _listeners else None


def on_losses(call: Callable[[list[Tensor]], None]) -> Undo:
    """Calls `call` with what backward is about to start from, before any listener hears of it."""
    stack = ExitStack()
    stack.callback(_BACKWARD.enter(call))
    _loss_calls.append(call)
    stack.callback(_loss_calls.remove, call)
    return stack.close


_listeners: list[Listener] = []
_loss_calls: list[Callable[[list[Tensor]], None]] = []


def _backward(plain: Callable, users: list) -> Callable:
    def backward(tensors, *args, **kwargs):
        if _loss_calls:
            for call in reversed(_loss_calls):
                call([tensors] if isinstance(tensors, Tensor) else list(tensors))
        if not _listeners:
            return plain(tensors, *args, **kwargs)
        listener = _listeners[-1]
        listener.before_backward((tensors,) if isinstance(tensors, Tensor) else tuple(tensors))
        plain(tensors, *args, **kwargs)
        if listener.hears_after:
            listener.after_backward()

    return backward


def _grad(plain: Callable, users: list) -> Callable:
    inside = False  # a mode calls the function that it was asked about by its name, and so comes here a second time

    def grad(outputs, *args, **kwargs):
        nonlocal inside
        if not users or inside:
            return plain(outputs, *args, **kwargs)
        made = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
        create_graph = bool(kwargs.get("create_graph", False))
        users[-1].on_grad(made, create_graph)
        inside = True
        try:
            grads = plain(outputs, *args, **kwargs)
        finally:
            inside = False
        if users:
            users[-1].after_grad(made, [g for g in grads if g is not None], create_graph)
        return grads

    return grad


def _scale(plain: Callable, users: list) -> Callable:
    def scale(self, outputs):
        if users and self.is_enabled():
            users[-1].on_scale(self, outputs)
        return plain(self, outputs)

    return scale


def _scaler_step(plain: Callable, users: list) -> Callable:
    def step(self, optimizer, *args, **kwargs):
        if not users or not self.is_enabled():
            return plain(self, optimizer, *args, **kwargs)
        ran: list[bool] = []
        handle = optimizer.register_step_post_hook(lambda *_: ran.append(True))
        try:
            return plain(self, optimizer, *args, **kwargs)
        finally:
            handle.remove()
            if users:
                users[-1].on_scaler_step(self, optimizer, bool(ran))

    return step


def _scaler_update(plain: Callable, users: list) -> Callable:
    def update(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        if users and self.is_enabled():
            users[-1].on_scaler_update(self)

    return update


_BACKWARD = Seam(torch.autograd, "backward", _backward)
_HEARD = (_BACKWARD, Seam(torch.autograd, "grad", _grad), Seam(GradScaler, "scale", _scale),
          Seam(GradScaler, "step", _scaler_step), Seam(GradScaler, "update", _scaler_update))  # fmt: skip

# functions, and the engine behind backward


def around_apply(call: Callable) -> Undo:
    """Runs ``call(cls, plain, *args, **kwargs)`` wherever ``cls.apply(*args, **kwargs)`` of an `autograd.Function` is
    called, which no mode sees; ``plain`` is the apply to go on with."""
    return _APPLY.enter(call)


def around_engine(context: Callable[[], AbstractContextManager]) -> Undo:
    """Opens ``context()`` while the backward engine runs; does nothing where torch has no such entry to the engine."""
    return _ENGINE.enter(context) if hasattr(torch.autograd, _ENGINE.name) else lambda: None


def _apply(plain: classmethod, users: list) -> classmethod:
    def apply(cls, *args, **kwargs):
        call = plain.__get__(None, cls)
        for user in users:
            call = partial(user, cls, call)
        return call(*args, **kwargs)

    return classmethod(apply)


def _engine(plain: Callable, users: list) -> Callable:
    def run(*args, **kwargs):
        with ExitStack() as stack:
            for context in reversed(users):
                stack.enter_context(context())
            return plain(*args, **kwargs)

    return run


_APPLY = Seam(torch.autograd.Function, "apply", _apply)
_ENGINE = Seam(torch.autograd, "_engine_run_backward", _engine)

# modules, optimizers, data loaders


def on_call(before: Callable, after: Callable | None = None) -> Undo:
    """Calls ``before(module, args)`` and ``after(module, args, output)`` around every module's forward pass; `after`
    also where that raises."""
    stack = ExitStack()
    stack.callback(register_module_forward_pre_hook(before).remove)
    if after is not None:
        stack.callback(register_module_forward_hook(after, always_call=True).remove)
    return stack.close


def on_forward(model: nn.Module, before: Callable) -> Undo:
    """Calls ``before(model, args, kwargs)`` before each forward pass of `model`."""
    return model.register_forward_pre_hook(before, with_kwargs=True).remove


def on_step(before: Callable, after: Callable, optimizers: Iterable[Optimizer] | None = None) -> Undo:
    """Calls ``before(optimizer, args, kwargs)``, which may return other arguments, and `after` around every step of
    `optimizers`, or of all there are."""
    stack = ExitStack()
    if optimizers is None:
        stack.callback(_EVERY_STEP.enter(before, after))
    for one in optimizers or ():
        stack.callback(one.register_step_pre_hook(before).remove)
        stack.callback(one.register_step_post_hook(after).remove)
    return stack.close


class _EveryStep:
    """One pair of hooks for all that hear every optimizer. They may come and go while a hook runs: what is about to
    step is heard in the order in which they came, what has stepped the other way round."""

    def __init__(self) -> None:
        self.users: list[tuple[Callable, Callable]] = []
        self._hooks = ExitStack()

    def enter(self, before: Callable, after: Callable) -> Undo:
        if not self.users:
            self._hooks.callback(register_optimizer_step_pre_hook(self._before).remove)
            self._hooks.callback(register_optimizer_step_post_hook(self._after).remove)
        self.users.append((before, after))
        return partial(self._leave, self.users[-1])

    def _leave(self, user: tuple[Callable, Callable]) -> None:
        if user in self.users:
            self.users.remove(user)
            if not self.users:
                self._hooks.close()

    def _before(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        if _inside_step(optimizer, sys._getframe(1)):
            return None
        changed = None
        for before, _ in list(self.users):
            given = before(optimizer, *(changed or (args, kwargs)))
            changed = changed if given is None else given
        return changed

    def _after(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        if _inside_step(optimizer, sys._getframe(1)):
            return
        for user in reversed(list(self.users)):
            if user in self.users:
                user[1](optimizer, args, kwargs)


_EVERY_STEP = _EveryStep()
NESTED = 8  # frames between a step and the step of a base class that it calls


def _inside_step(optimizer: Optimizer, hooked: FrameType) -> bool:
    """Whether the step whose hook runs in the frame `hooked` was called by another step of `optimizer`."""
    frame = hooked.f_back
    for _ in range(NESTED):
        if frame is None:
            return False
        if frame.f_code is hooked.f_code and frame.f_locals.get("args", (None,))[0] is optimizer:
            return True
        frame = frame.f_back
    return False


def on_zero_grad(call: Callable[[], None]) -> Undo:
    """Calls `call` before any optimizer clears its gradients."""
    return _ZERO_GRAD.enter(call)


def on_transform(call: Callable[[], None]) -> Undo:
    """Calls `call` when the outermost of nested gradients of ``torch.func`` has been computed."""
    return _TRANSFORM.enter(call)


def on_optimizer(call: Callable[[], None]) -> Undo:
    """Calls `call` whenever an optimizer is made."""
    return _INIT.enter(call)


def on_batch(change: Callable[[object], object]) -> Undo:
    """Hands every batch that a DataLoader yields to `change`, and the program what that returns."""
    return _NEXT.enter(lambda iterator, fetch: change(fetch()))


def on_loader(call: Callable[[Any, object], None]) -> Undo:
    """Calls ``call(iterator, batch)`` with every batch that a DataLoader's iterator yields."""

    def told(iterator, fetch):
        batch = fetch()
        call(iterator, batch)
        return batch

    return _NEXT.enter(told)


def around_batch(fetching: Callable[[Callable[[], object]], object]) -> Undo:
    """Runs ``fetching(fetch)`` wherever a DataLoader fetches a batch; ``fetch()`` does it."""
    return _NEXT.enter(lambda iterator, fetch: fetching(fetch))


def on_samples(call: Callable[[Any, object], None]) -> Undo:
    """Calls ``call(iterator, samples)`` wherever a DataLoader's iterator has drawn which samples it fetches next."""
    return _SAMPLES.enter(call)


def on_process(call: Callable[[BaseProcess], None]) -> Undo:
    """Calls `call` with every process of ``multiprocessing`` that is about to start."""
    return _START.enter(call)


def on_arrays(call: Callable[[Tensor], None]) -> Undo:
    """Calls `call` with every tensor that ``torch.from_numpy`` makes."""
    return _FROM_NUMPY.enter(call)


@contextmanager
def zero_grad_off(owners: Iterable[Optimizer | nn.Module]) -> Iterator[None]:
    """Makes ``zero_grad`` of these optimizers and modules do nothing."""
    held = [one for one in owners if "zero_grad" not in vars(one)]
    for one in held:
        vars(one)["zero_grad"] = lambda *args, **kwargs: None
    try:
        yield
    finally:
        for one in held:
            del vars(one)["zero_grad"]


def _told(plain: Callable, users: list) -> Callable:
    def told(self, *args, **kwargs):
        for call in reversed(users):
            call()
        return plain(self, *args, **kwargs)

    return told


def _handed(plain: Callable, users: list) -> Callable:
    def hand_over(iterator):
        fetch = partial(plain, iterator)
        for user in users:
            fetch = partial(user, iterator, fetch)
        return fetch()

    return hand_over


def _drawn(plain: Callable, users: list) -> Callable:
    def draw(iterator):
        samples = plain(iterator)
        for call in users:
            call(iterator, samples)
        return samples

    return draw


def _transformed(plain: Callable, users: list) -> Callable:
    depth = 0

    def grad_and_value(*args, **kwargs):
        nonlocal depth
        depth += 1
        try:
            result = plain(*args, **kwargs)
        finally:
            depth -= 1
        if depth == 0:
            for call in list(users):
                call()
        return result

    return grad_and_value


def _starting(plain: Callable, users: list) -> Callable:
    def start(process):
        for call in users:
            call(process)
        return plain(process)

    return start


def _made(plain: Callable, users: list) -> Callable:
    def make(array):
        made = plain(array)
        for call in users:
            call(made)
        return made

    return make


_ZERO_GRAD, _INIT = Seam(Optimizer, "zero_grad", _told), Seam(Optimizer, "__init__", _told)
_NEXT = Seam(dataloader._BaseDataLoaderIter, "__next__", _handed)
_SAMPLES = Seam(dataloader._BaseDataLoaderIter, "_next_index", _drawn)
_TRANSFORM = Seam(eager_transforms, "grad_and_value_impl", _transformed)
_START = Seam(BaseProcess, "start", _starting)
_FROM_NUMPY = Seam(torch, "from_numpy", _made)
