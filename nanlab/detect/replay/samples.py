"""Picks samples out of a batch of any nesting, into a new batch or in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from nanlab.detect.state.nesting import new_dataclass, tensors

CHANNELS = (1, 3, 4)  # the first dimension of an image as detection models take them, in a list


def size(batch: object) -> int:
    """The number of samples: the length that most tensors' first dimensions share, or that of a list of samples; 0 when
    the batch holds neither."""
    lengths = Counter(t.shape[0] for t in tensors(batch) if t.dim())
    if isinstance(batch, list) and (not lengths or not _shared(lengths, batch)):
        return len(batch)
    return lengths.most_common(1)[0][0] if lengths else 0


def _shared(lengths: Counter, batch: list) -> bool:
    """Whether the tensors of a list are columns of one batch, rather than samples of different lengths or images."""
    columns = len(lengths) == 1 and next(iter(lengths)) > 1 and all(isinstance(part, Tensor) for part in batch)
    images = columns and next(iter(lengths)) in CHANNELS and all(part.dim() == 3 for part in batch)
    return columns and not images


def only(batch: object, keep: Sequence[int]) -> object:
    """The batch of the samples in `keep`, in that order. Tensors (and lists) of another length are left as they are."""
    if isinstance(batch, list) and size(batch) == len(batch) and not _is_columns(batch):
        return [batch[i] for i in keep]
    return _pick(batch, list(keep), size(batch))


def _is_columns(batch: list) -> bool:
    return all(isinstance(part, Tensor) and part.dim() and part.shape[0] == len(batch) for part in batch)


def without(batch: object, drop: Sequence[int]) -> object:
    """The batch without the samples in `drop`."""
    gone = set(drop)
    return only(batch, [i for i in range(size(batch)) if i not in gone])


@contextmanager
def exchanged(batch: object, other: object) -> Iterator[None]:
    """`batch` itself holding what `other`, which was picked from it, holds, for the length of a block. ValueError where
    that would take more than other values for its tensors, or for a list of samples."""
    if isinstance(batch, list) and isinstance(other, list) and len(batch) != len(other):
        held, batch[:] = batch[:], other
        try:
            yield
        finally:
            batch[:] = held
        return
    pairs = [(t, t.data, new.data) for t, new in zip(tensors(batch), tensors(other), strict=True) if t.is_leaf]
    try:
        for t, _, new in pairs:
            t.data = new
        yield
    finally:
        for t, data, _ in pairs:
            t.data = data


def _pick(tree: object, keep: list[int], length: int) -> object:
    if isinstance(tree, Tensor):
        if tree.dim() and tree.shape[0] == length:
            return tree[torch.tensor(keep, dtype=torch.long, device=tree.device)]
        return tree
    if isinstance(tree, list) and len(tree) == length and not any(isinstance(part, Tensor) for part in tree):
        return [tree[i] for i in keep]
    if isinstance(tree, list):
        return [_pick(part, keep, length) for part in tree]
    if isinstance(tree, tuple):
        return tuple.__new__(type(tree), [_pick(part, keep, length) for part in tree])
    if isinstance(tree, dict):
        return type(tree)((key, _pick(part, keep, length)) for key, part in tree.items())
    if is_dataclass(tree) and not isinstance(tree, type):
        return new_dataclass(type(tree), {name: _pick(part, keep, length) for name, part in _fields(tree)})
    return tree


def _fields(tree: Any) -> Iterator[tuple[str, object]]:
    return ((f.name, getattr(tree, f.name)) for f in fields(tree) if hasattr(tree, f.name))
