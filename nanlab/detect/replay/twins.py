"""The same step with other data or wider numbers, by exchanging what its tensors hold while it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from nanlab.detect.state.sources import Sources, named_leaves


@contextmanager
def wide(sources: Sources) -> Iterator[None]:
    """float64 in place of every narrower float: in weights, buffers, optimizer state, the batch and what the step
    creates. The caller restores the values; identity of the tensors is kept."""
    default = torch.get_default_dtype()
    for kind, _, t in sources.everything():
        if kind != "grad" and t.is_floating_point():
            t.grad = None
            t.data = t.data.double()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


@contextmanager
def without(batch: object, index: int) -> Iterator[None]:
    """The batch without its sample `index`, in every tensor that has as many rows as the batch has samples."""
    held = [(t, t.data) for t in rows(batch)]
    try:
        for t, data in held:
            t.data = torch.cat([data[:index], data[index + 1 :]])
        yield
    finally:
        for t, data in held:
            t.data = data


def rows(batch: object) -> list[Tensor]:
    """The tensors of `batch` whose first dimension is the number of samples: the size that most of them share."""
    leaves = list({id(t): t for _, t in named_leaves(batch, "batch") if t.dim()}.values())
    if not leaves:
        return []
    size = Counter(t.shape[0] for t in leaves).most_common(1)[0][0]
    return [t for t in leaves if t.shape[0] == size and t.is_leaf]
