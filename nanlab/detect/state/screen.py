"""Cheap looks at many tensors: a norm over all of them first, the exact count only on a hit.

An L2 norm is finite only if every value is; it also overflows on finite gradients from about 1e19 in float32, so a norm
that is not finite is followed by an exact look. Measured in ``benchmarks/overhead.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop

from nanlab.detect.state.values import count, plain

NARROW = {torch.float16, torch.bfloat16}
QUIET_NORM = 1e15  # its square, a second moment, stays 8 decades below float32's largest, 3.4e38
SMALL_EPS = 1e-12  # QUIET_NORM divided by it is 1e27: an update that float32 still holds
LARGE_LR = 1e6  # times QUIET_NORM it is 1e21
MOST_DECAY = 0.1  # of a weight in a step: up to there decay shrinks weights, also with momentum
TINY = 65_536  # values: a norm over them takes about as long as the calls that ask for it
KNOWN = {SGD, Adam, AdamW, RMSprop, Adagrad}


def norm(tensors: list[Tensor]) -> float:
    """The L2 norm over all `tensors`, in float32 or wider; NaN or inf if any value is, or if it overflowed; NaN for no
    tensors. One pass over the data; one transfer from a device."""
    if not tensors:
        return math.nan
    dtype = torch.float32 if tensors[0].dtype in NARROW else None
    try:
        norms = torch._foreach_norm(tensors, 2, dtype=dtype)
    except (RuntimeError, NotImplementedError):  # sparse, nested, mixed widths
        norms = torch._foreach_norm([wide(t) for t in tensors], 2)
    if norms[0].is_cpu:
        return math.hypot(*map(Tensor.item, norms))
    return math.hypot(*torch.stack(norms).tolist())


def all_finite(tensors: list[Tensor]) -> bool:
    """Whether every value of these plain CPU tensors is finite, exactly, in half the time of a norm over small ones. It
    is the check of the loss scaler, with a scale of one: it writes to each tensor the values that it holds."""
    try:
        torch._amp_foreach_non_finite_check_and_unscale_(tensors, _found, _ONE)
    except RuntimeError:  # a layout or a gradient of a gradient that may not be written to
        return math.isfinite(norm(tensors)) or not non_finite(tensors)
    if _found.item():
        _found.zero_()
        return False
    return True


def tiny(params: Sequence[Tensor]) -> bool:
    """Whether all of `params` together are so small that calls, and not values, are what a look at them costs."""
    plain_ones = all(p.is_cpu and p.layout is torch.strided and p.dtype is torch.float32 for p in params)
    return plain_ones and sum(p.numel() for p in params) <= TINY


_found, _ONE = torch.zeros((), device="cpu"), torch.ones((), device="cpu")


def wide(t: Tensor) -> Tensor:
    """The stored values of `t`, 16-bit and narrower ones in float32."""
    t = plain(t)
    return t.float() if t.dtype.itemsize < 4 else t


def non_finite(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Those of `tensors` that hold a non-finite value, exactly."""
    return [t for t in tensors if count(t) is not None]


def can_spoil(optimizer: Optimizer, gradient_norm: float) -> bool:
    """Whether a step with a finite gradient of norm `gradient_norm` could make a non-finite weight or state.

    False only where arithmetic rules it out: an update rule that is known here, an eps that cannot vanish, moderate
    learning rate and decay, and a gradient whose square is far from overflow. (Centered RMSprop takes the root of a
    difference that rounding can make negative, so it is never ruled out.) Weights narrower than float32 are the
    caller's to look for: see `narrow`.
    """
    if type(optimizer) not in KNOWN or not gradient_norm <= QUIET_NORM:
        return True
    for group in optimizer.param_groups:
        get, lr = group.get, group["lr"]
        if (
            get("eps", 1.0) < SMALL_EPS
            or not 0 <= lr <= LARGE_LR
            or lr * get("weight_decay", 0) > MOST_DECAY
            or get("momentum", 0) > 1
            or get("centered", False)
        ):
            return True
    return False


def narrow(params: Sequence[Tensor]) -> bool:
    """Whether any of `params` is stored in less than 32 bits."""
    return any(p.dtype.itemsize < 4 for p in params)


def sums(losses: Sequence[Tensor]) -> list[float]:
    """The sum of each loss, fetched from its device in one transfer."""
    return torch.stack([loss.sum().float() for loss in losses]).tolist() if losses else []
