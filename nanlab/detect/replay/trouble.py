"""Tries a call on copies of its operands: at which elements does its result, or its derivative, come out non-finite?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from nanlab.detect.replay.mend import finite, floats, replace
from nanlab.detect.state.values import bad_mask


def trouble(func: Callable, args: tuple, kwargs: dict) -> dict[int, Tensor] | None:
    """For each floating-point argument, by ``id``, where the result or the derivative with respect to it is not finite;
    None when all of them are finite. The function is tried on copies, without the program noticing."""
    tensors = floats(args, kwargs)
    with _disable_current_modes(), torch.enable_grad(), torch.random.fork_rng(devices=[]):
        try:
            leaves, outputs = _tried(func, args, kwargs, tensors, grad=True)
        except RuntimeError:  # an in-place function, which a leaf does not allow
            leaves, outputs = _tried(func, args, kwargs, tensors, grad=False)
        diff = [t for t in outputs if t.requires_grad]
        grads: Sequence[Tensor | None] = [None] * len(leaves)
        if diff and all(t.requires_grad for t in leaves):
            totals = [t.real.sum() if t.is_complex() else t.sum() for t in diff]
            grads = torch.autograd.grad(totals, leaves, allow_unused=True)
        masks = {id(t): where_bad(t.detach(), g, outputs) for t, g in zip(tensors, grads, strict=True)}
        return None if finite(outputs) and not any(bool(m.any()) for m in masks.values()) else masks


def _tried(func: Callable, args: tuple, kwargs: dict, tensors: list[Tensor], grad: bool):
    """Copies of `tensors`, and the tensors of the result on them."""
    copies = {id(t): t.detach().clone().requires_grad_(grad) for t in tensors}
    tried_args, tried_kwargs = replace(args, kwargs, copies)
    return list(copies.values()), floats(func(*tried_args, **tried_kwargs))


def where_bad(t: Tensor, grad: Tensor | None, outputs: Sequence[Tensor]) -> Tensor:
    """Where the operand `t` is bad itself, has a bad derivative, or meets a bad element of a broadcast result."""
    mask = bad_mask(t) if grad is None else bad_mask(t) | bad_mask(grad)
    for out in outputs:
        folded = _fold(bad_mask(out), t.shape)
        mask = mask if folded is None else mask | folded
    return mask


def _fold(mask: Tensor, shape: torch.Size) -> Tensor | None:
    """`mask`, of a broadcast result, brought to an operand's `shape`; None when that shape did not broadcast to it."""
    try:
        if torch.broadcast_shapes(mask.shape, shape) != mask.shape:
            return None
        return mask.float().sum_to_size(shape).bool()
    except RuntimeError:
        return None
