"""Tries a call on copies of its operands: at which elements does its result, or its derivative, come out non-finite?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from nanlab.detect.replay import safe
from nanlab.detect.state.values import bad_mask


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
            totals = [t.real.sum() if t.is_complex() else t.sum() for t in diff]
            grads = torch.autograd.grad(totals, leaves, allow_unused=True)
        masks = [where_bad(t.detach(), g, outputs) for t, g in zip(tensors, grads, strict=True)]
        if safe.finite(outputs) and not any(bool(m.any()) for m in masks):
            return None
        return masks


def where_bad(t: Tensor, grad: Tensor | None, outputs: list[Tensor]) -> Tensor:
    """Where the operand `t` is bad itself, has a bad derivative, or meets a bad element of a broadcast result."""
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
