"""Values that no operation has trouble with, put where an operand made it fail."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from nanlab.detect.state.values import is_finite, is_numeric

SAFE = 0.5  # inside the domain of log, sqrt, acos, atanh, erfinv and lgamma, and no divisor to fear
ABOVE_ONE = {"acosh", "arccosh"}
FAR = 1e4  # stands for an infinity: far below what softmax keeps, and inside fp16
DEVIATIONS = {"std", "var", "std_mean", "var_mean"}
MATRICES = {"logdet", "slogdet", "det", "inverse", "inv", "cholesky", "linalg_inv", "linalg_slogdet", "linalg_det",
            "linalg_cholesky", "linalg_solve", "linalg_inv_ex", "linalg_cholesky_ex", "_linalg_slogdet", "_linalg_det",
            "_linalg_solve_ex", "linalg_eigh", "linalg_svd", "svd", "_linalg_eigh", "_linalg_svd"}  # fmt: skip


def repaired(t: Tensor, mask: Tensor, name: str) -> Tensor:
    """`t` with safe values where `mask` is True; differentiable where it is not."""
    value = 2.0 if name in ABOVE_ONE else SAFE
    safe = torch.full_like(t, value, requires_grad=False)
    x = t.detach()
    if not x.is_complex():
        safe = torch.where(x.isposinf(), torch.full_like(safe, FAR), safe)
        safe = torch.where(x.isneginf(), torch.full_like(safe, -FAR), safe)
    return torch.where(mask, safe, t)


def tame(t: Tensor, name: str) -> Tensor:
    """The whole of `t` made harmless: finite, between −1 and 1, no row constant; the identity for a function of square
    matrices."""
    if name.lstrip("_") in {m.lstrip("_") for m in MATRICES} and t.dim() >= 2 and t.shape[-1] == t.shape[-2]:
        return torch.eye(t.shape[-1], dtype=t.dtype, device=t.device).expand(t.shape) + 0 * torch.nan_to_num(t, 0, 0, 0)
    ramp = torch.linspace(0.25, 0.75, max(t.numel(), 1), device=t.device)[: t.numel()].reshape(t.shape).to(t.dtype)
    return ramp + 0 * torch.nan_to_num(t, 0, 0, 0)


def longer(t: Tensor, dims: list[int]) -> Tensor:
    """`t` with two elements along each of `dims` that has fewer, so that there is something to average."""
    for d in dims:
        if t.shape[d] < 2:
            nothing = t.new_zeros([*t.shape[:d], 2, *t.shape[d + 1 :]])
            t = torch.cat([t, t.detach() + 1], dim=d) if t.shape[d] else nothing + t.sum()  # keeps the graph
    return t


def replace(args: tuple, kwargs: dict, new: dict[int, object]) -> tuple[tuple, dict]:
    """The arguments with the leaves whose ``id`` is in `new` exchanged."""
    leaves, spec = tree_flatten((args, kwargs))
    return tree_unflatten([new.get(id(leaf), leaf) for leaf in leaves], spec)


def floats(args: tuple, kwargs: dict) -> list[Tensor]:
    """The floating-point tensors among the arguments, each once."""
    found = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, Tensor) and is_numeric(t)]
    return list({id(t): t for t in found}.values())


def finite(result: object) -> bool:
    """Whether every tensor of a result is finite."""
    return all(is_finite(t) for t in tree_flatten(result)[0] if isinstance(t, Tensor))


def fold(mask: Tensor, shape: torch.Size) -> Tensor | None:
    """`mask`, of a broadcast result, brought to an operand's `shape`; None when that shape did not broadcast to it."""
    try:
        if torch.broadcast_shapes(mask.shape, shape) != mask.shape:
            return None
        return mask.float().sum_to_size(shape).bool()
    except RuntimeError:
        return None

