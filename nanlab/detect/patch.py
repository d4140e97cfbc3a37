"""Mends the operands of one operation in a replay, just before it runs.

Patching the result would not do: backward computes from the operands that were saved. So the function that the program
called gets operands whose troublesome elements were exchanged, and the graph is built on those. Operations that no call of
the program stands for (inside attention, inside an optimizer) are mended where they run, in the operand's own memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from nanlab.detect import safe
from nanlab.detect.labels import Place, place_of, user_frame
from nanlab.detect.modes import keep_on_in_backward
from nanlab.detect.record import UNWRITTEN
from nanlab.detect.values import bad_mask


@dataclass(frozen=True)
class Target:
    """What to mend: every call of the function `call` (or run of the operation `op`) on one line of the program."""

    place: Place
    call: str | None
    op: str
    phase: str


class PatchCalls(TorchFunctionMode):
    """Mends the arguments of the target function. With `whole`, all of them; else only the elements at which its result
    or its derivative is not finite. `count` says how many calls were mended."""

    def __init__(self, target: Target, whole: bool) -> None:
        super().__init__()
        self.target, self.whole, self.count = target, whole, 0
        self._depth, self._undo = 0, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == self.target.call and self.here():
            args, kwargs = self.mended(func, args, kwargs)
        return func(*args, **kwargs)

    def __enter__(self):
        if not self._depth:
            self._undo = [keep_on_in_backward(self, []), self._follow_custom_functions()]
        self._depth += 1  # the backward engine enters it again, see keep_on_in_backward
        return super().__enter__()

    def __exit__(self, *exc):
        self._depth -= 1
        while not self._depth and self._undo:
            self._undo.pop()()
        return super().__exit__(*exc)

    def _follow_custom_functions(self) -> Callable[[], None]:
        """``Function.apply`` asks no mode: it is exchanged for as long as this one is on."""
        base = torch.autograd.Function
        plain = base.__dict__["apply"]

        def apply(cls, *args, **kwargs):
            call = plain.__get__(None, cls)
            if cls.__name__ == self.target.call and self.here():
                args, kwargs = self.mended(call, args, kwargs)
            return call(*args, **kwargs)

        base.apply = classmethod(apply)
        return lambda: setattr(base, "apply", plain)

    def here(self) -> bool:
        """Whether the program stands on the target's line; to be called from what torch called."""
        frame, _ = user_frame(sys._getframe(2))
        return place_of(frame) == self.target.place

    def mended(self, func: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments, mended where the call is in trouble."""
        name, tensors = self.target.call or "", safe.floats(args, kwargs)
        if any(torch._C._functorch.is_functorch_wrapped_tensor(t) for t in tensors):  # cannot be tried on its own
            self.count += 1
            return safe.replace(args, kwargs, {id(t): safe.tame(t, name) for t in tensors if self.whole})
        masks = trouble(func, args, kwargs)
        if masks is None:
            return args, kwargs
        self.count += 1
        special = mend_counts(func, args, kwargs, name)
        if special is not None:
            return special
        if "div" in name:
            args, kwargs = nonzero_divisor(args, kwargs)
        if self.whole or not any(bool(m.any()) for m in masks):
            return safe.replace(args, kwargs, {id(t): safe.tame(t, name) for t in tensors})
        return safe.replace(args, kwargs, {id(t): safe.repaired(t, m, name) for t, m in zip(tensors, masks, strict=True)})


def trouble(func: Callable, args: tuple, kwargs: dict) -> list[Tensor] | None:
    """For each floating-point argument, where the result or the derivative with respect to it is not finite; None when
    all of them are finite. The function is tried on copies, without the program noticing."""
    tensors = safe.floats(args, kwargs)
    with _disable_current_modes(), torch.enable_grad(), torch.random.fork_rng(devices=[]):
        copies = {id(t): t.detach().clone().requires_grad_() for t in tensors}
        try:
            result = func(*(tried := safe.replace(args, kwargs, copies))[0], **tried[1])
        except RuntimeError:  # an in-place function, which a leaf does not allow
            copies = {id(t): t.detach().clone() for t in tensors}
            result = func(*(tried := safe.replace(args, kwargs, copies))[0], **tried[1])
        outputs = safe.floats((result,), {})
        leaves = [copies[id(t)] for t in tensors]
        diff = [t for t in outputs if t.requires_grad]
        grads = [None] * len(leaves)
        if diff and all(t.requires_grad for t in leaves):
            grads = torch.autograd.grad([t.real.sum() if t.is_complex() else t.sum() for t in diff], leaves, allow_unused=True)
        masks = [_where(t.detach(), g, outputs) for t, g in zip(tensors, grads, strict=True)]
        if safe.finite(outputs) and not any(bool(m.any()) for m in masks):
            return None
        return masks


def _where(t: Tensor, grad: Tensor | None, outputs: list[Tensor]) -> Tensor:
    mask = bad_mask(t)
    if grad is not None:
        mask = mask | bad_mask(grad)
    for out in outputs:
        folded = safe.fold(bad_mask(out), t.shape)
        mask = mask if folded is None else mask | folded
    return mask


def mend_counts(func: Callable, args: tuple, kwargs: dict, name: str) -> tuple[tuple, dict] | None:
    """For what fails by how many there are, not by their values: means of nothing, deviations of one, targets that are
    all ignored, fewer frames than labels. None when that is not the trouble."""
    tensors = safe.floats(args, kwargs)
    if name in ("mean", "nanmean", *safe.DEVIATIONS) and tensors:
        x = tensors[0]
        short = [d for d in range(x.dim()) if x.shape[d] < 2] or ([] if x.dim() else None)
        if short:
            return safe.replace(args, kwargs, {id(x): safe.longer(x, short)})
        if short is None:
            return safe.replace(args, kwargs, {id(x): torch.stack([x, x.detach() + 1])})
    if "ctc" in name and len(args) > 2 and isinstance(args[2], Tensor):
        return (*args[:2], torch.full_like(args[2], args[0].shape[0]), *args[3:]), kwargs
    if "cross_entropy" in name or "nll_loss" in name:
        target = args[1] if len(args) > 1 else kwargs.get("target")
        if isinstance(target, Tensor) and not target.is_floating_point() and safe.finite(tensors):
            return safe.replace(args, kwargs, {id(target): torch.zeros_like(target)})
    return None


def nonzero_divisor(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Ones for the zeros of a divisor that is an integer or a tensor of integers."""

    def one(value: object) -> object:
        if isinstance(value, Tensor) and not value.is_floating_point() and not value.is_complex():
            return torch.where(value == 0, torch.ones_like(value), value)
        return 1 if isinstance(value, int | float) and value == 0 else value

    return (args[0], *map(one, args[1:])), {k: one(v) for k, v in kwargs.items()}


class PatchOperations(TorchDispatchMode):
    """Mends the operands of the target operation where it runs, each time its result would not be finite; in place, so
    that whatever was saved for backward is mended too."""

    supports_higher_order_operators = True

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target, self.count = target, 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.__name__.split(".")[0] != self.target.op or not self._here():
            return func(*args, **kwargs)
        if self.target.op in UNWRITTEN:
            self.count += 1
            return func(*args, **kwargs).zero_()
        inputs = safe.floats(args, kwargs)
        before = {id(t): t.detach().clone() for t in inputs}
        result = func(*args, **kwargs)
        if safe.finite(result) and all(safe.finite(t) for t in inputs):
            return result
        self.count += 1
        outputs = safe.floats((result,), {})
        masks = {id(t): _where(before[id(t)], None, outputs) for t in inputs}
        if not any(bool(m.any()) for m in masks.values()):
            masks = {}
        for t in inputs:
            old = before[id(t)]
            overwrite(t, safe.repaired(old, masks[id(t)], self.target.op) if masks else safe.tame(old, self.target.op))
        return func(*args, **kwargs)

    def _here(self) -> bool:
        frame, _ = user_frame(sys._getframe(2))
        return place_of(frame) == self.target.place


def overwrite(t: Tensor, values: Tensor) -> None:
    """Writes `values` into the memory of `t`; a tensor that shows one element in several places is left alone."""
    try:
        t.copy_(values)
    except RuntimeError:
        return
