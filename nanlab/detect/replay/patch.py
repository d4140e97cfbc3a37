"""Mends the operands of one operation in a replay, just before it runs.

Patching the result would not do: backward computes from the operands that were saved. So the function that the program
called gets operands whose troublesome elements were exchanged, and the graph is built on those. Operations that no
call of the program stands for (inside attention, inside an optimizer) are mended where they run, in the operand's own
memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from nanlab.detect import patching
from nanlab.detect.forms import known
from nanlab.detect.origin.report import Target
from nanlab.detect.replay.mend import finite, floats, mended, repaired, replace, tame
from nanlab.detect.replay.trouble import trouble, where_bad
from nanlab.detect.trace.labels import place_of, user_frame
from nanlab.detect.trace.modes import keep_on_in_backward


class PatchCalls(TorchFunctionMode):
    """Mends the arguments of the target function. With `whole`, all of them; else only the elements at which its result
    or its derivative is not finite. `count` says how many calls were mended."""

    def __init__(self, target: Target, whole: bool) -> None:
        super().__init__()
        self.target, self.whole, self.count = target, whole, 0
        self._depth = 0
        self._undo: list[Callable[[], None]] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == self.target.call and self.here():
            args, kwargs = self.mended(func, args, kwargs)
        return func(*args, **kwargs)

    def __enter__(self):
        if not self._depth:
            self._undo = [keep_on_in_backward(self, []), patching.around_apply(self._apply)]
        self._depth += 1  # the backward engine enters it again, see keep_on_in_backward
        return super().__enter__()

    def __exit__(self, *exc):
        self._depth -= 1
        while not self._depth and self._undo:
            self._undo.pop()()
        return super().__exit__(*exc)

    def _apply(self, cls: type, plain: Callable, /, *args, **kwargs):
        """For ``Function.apply``, which asks no mode."""
        if cls.__name__ == self.target.call and self.here():
            args, kwargs = self.mended(plain, args, kwargs)
        return plain(*args, **kwargs)

    def here(self) -> bool:
        """Whether the program stands on the target's line; to be called from what torch called."""
        frame, _ = user_frame(sys._getframe(2))
        return place_of(frame) == self.target.place

    def mended(self, func: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments, mended where the call is in trouble."""
        name, tensors = self.target.call or "", floats(args, kwargs)
        if any(torch._C._functorch.is_functorch_wrapped_tensor(t) for t in tensors):  # cannot be tried on its own
            self.count += 1
            return replace(args, kwargs, {id(t): tame(t, name) for t in tensors if self.whole})
        masks = trouble(func, args, kwargs)
        if masks is None:
            return args, kwargs
        self.count += 1
        return mended(args, kwargs, masks, name, self.whole)


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
        if known(self.target.op).unwritten:
            self.count += 1
            return func(*args, **kwargs).zero_()
        inputs = floats(args, kwargs)
        before = {id(t): t.detach().clone() for t in inputs}
        result = func(*args, **kwargs)
        if finite(result) and finite(inputs):
            return result
        self.count += 1
        masks = {key: where_bad(old, None, floats(result)) for key, old in before.items()}
        whole = not any(bool(m.any()) for m in masks.values())
        for t in inputs:
            old, name = before[id(t)], self.target.op
            overwrite(t, tame(old, name) if whole else repaired(old, masks[id(t)], name))
        return func(*args, **kwargs)

    def _here(self) -> bool:
        frame, _ = user_frame(sys._getframe(2))
        return place_of(frame) == self.target.place


WAYS = 3  # how many patches there are to try


def patches(target: Target) -> list[PatchCalls | PatchOperations]:
    """The ways to mend the operands of `target`, the gentlest first: where they are in trouble, at the operation
    itself, all of them."""
    return [PatchCalls(target, whole=False), PatchOperations(target), PatchCalls(target, whole=True)]


def overwrite(t: Tensor, values: Tensor) -> None:
    """Writes `values` into the memory of `t`; a tensor that shows one element in several places is left alone."""
    try:
        t.copy_(values)
    except RuntimeError:
        return
