"""Arguments that no operation has trouble with, made from those that it failed on."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from nanlab.detect.forms import known
from nanlab.detect.state.values import is_finite, is_numeric

FAR = 1e4  # stands for an infinity: far below what softmax keeps, and inside fp16


def mended(args: tuple, kwargs: dict, masks: dict[int, Tensor], name: str, whole: bool) -> tuple[tuple, dict]:
    """The arguments of the function `name` with safe values in each tensor where its mask (by ``id``) is True; all of
    them made harmless where `whole` is set or no mask says anything. What fails by how many elements there are, and
    integers that are divided by, are mended as such."""
    if (counted := _counts(args, kwargs, name)) is not None:
        return counted
    if known(name).divides:
        args, kwargs = _nonzero_divisor(args, kwargs)
    tensors = floats(args, kwargs)
    if whole or not any(bool(m.any()) for m in masks.values()):
        return replace(args, kwargs, {id(t): tame(t, name) for t in tensors})
    return replace(args, kwargs, {id(t): repaired(t, masks[id(t)], name) for t in tensors})


def repaired(t: Tensor, mask: Tensor, name: str) -> Tensor:
    """`t` with safe values where `mask` is True; differentiable where it is not."""
    safe = torch.full_like(t, known(name).safe, requires_grad=False)
    x = t.detach()
    if not x.is_complex():
        safe = torch.where(x.isposinf(), torch.full_like(safe, FAR), safe)
        safe = torch.where(x.isneginf(), torch.full_like(safe, -FAR), safe)
    return torch.where(mask, safe, t)


def tame(t: Tensor, name: str) -> Tensor:
    """The whole of `t` made harmless: finite, between −1 and 1, no row constant; the identity for a function of square
    matrices."""
    if known(name).square and t.dim() >= 2 and t.shape[-1] == t.shape[-2]:
        return torch.eye(t.shape[-1], dtype=t.dtype, device=t.device).expand(t.shape) + 0 * torch.nan_to_num(t, 0, 0, 0)
    ramp = torch.linspace(0.25, 0.75, max(t.numel(), 1), device=t.device)[: t.numel()].reshape(t.shape).to(t.dtype)
    return ramp + 0 * torch.nan_to_num(t, 0, 0, 0)


def _counts(args: tuple, kwargs: dict, name: str) -> tuple[tuple, dict] | None:
    """For what fails by how many there are: means of nothing, deviations of one, targets that are all ignored, fewer
    frames than labels. None when that is not the trouble."""
    counts, tensors = known(name).counts, floats(args, kwargs)
    if counts == "elements" and tensors:
        x = tensors[0]
        short = [d for d in range(x.dim()) if x.shape[d] < 2]
        if short or not x.dim():
            more = _longer(x, short) if x.dim() else torch.stack([x, x.detach() + 1])
            return replace(args, kwargs, {id(x): more})
    if counts == "frames" and len(args) > 2 and isinstance(args[2], Tensor):
        return (*args[:2], torch.full_like(args[2], args[0].shape[0]), *args[3:]), kwargs
    if counts == "targets":
        target = args[1] if len(args) > 1 else kwargs.get("target")
        if isinstance(target, Tensor) and not target.is_floating_point() and finite(tensors):
            return replace(args, kwargs, {id(target): torch.zeros_like(target)})
    return None


def _longer(t: Tensor, dims: list[int]) -> Tensor:
    """`t` with two elements along each of `dims`, so that there is something to average."""
    for d in dims:
        nothing = t.new_zeros([*t.shape[:d], 2, *t.shape[d + 1 :]])
        t = torch.cat([t, t.detach() + 1], dim=d) if t.shape[d] else nothing + t.sum()  # keeps the graph
    return t


def _nonzero_divisor(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Ones for the zeros of a divisor that is an integer or a tensor of integers."""

    def one(value: object) -> object:
        if isinstance(value, Tensor) and not value.is_floating_point() and not value.is_complex():
            return torch.where(value == 0, torch.ones_like(value), value)
        return 1 if isinstance(value, int | float) and value == 0 else value

    return (args[0], *map(one, args[1:])), {k: one(v) for k, v in kwargs.items()}


def replace(args: tuple, kwargs: dict, new: dict[int, Tensor]) -> tuple[tuple, dict]:
    """The arguments with the leaves whose ``id`` is in `new` exchanged."""
    leaves, spec = tree_flatten((args, kwargs))
    return tree_unflatten([new.get(id(leaf), leaf) for leaf in leaves], spec)


def floats(*trees: object) -> list[Tensor]:
    """The floating-point tensors among arguments or results, each once."""
    found = [t for t in tree_flatten(trees)[0] if isinstance(t, Tensor) and is_numeric(t)]
    return list({id(t): t for t in found}.values())


def finite(result: object) -> bool:
    """Whether every tensor of a result is finite."""
    return all(is_finite(t) for t in tree_flatten(result)[0] if isinstance(t, Tensor))
