"""Which operation wrote the non-finite values that a tensor holds.

Only operations whose result was not finite are remembered, as events that point to the events of their operands. The
key is the storage, so that views need no bookkeeping, and a part of a storage keeps its event while other parts are
overwritten. Storages are held by weak reference: nothing stays alive for this, and no address is mistaken for another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from nanlab.detect.forms import Reading
from nanlab.detect.state.values import Counts, plain
from nanlab.detect.trace.labels import Label, Place, Spot

Reader = tuple[Place | None, nn.Module | None]  # the line and the module that first read a tensor


@dataclass(eq=False, slots=True)
class Parent:
    """An operand that was not finite: the event that made it so, what it held, and which argument it was."""

    event: Event
    counts: Counts
    name: str


@dataclass(eq=False, slots=True)
class Event:
    """One operation with a non-finite result, or (`source` set) a tensor that was not finite when first read."""

    number: int  # of the operation, counted from the tracer's start
    op: str  # as the dispatcher calls it, such as "aten::div"
    phase: str  # forward, backward, optimizer
    step: int  # the tracer's count of optimizer steps that ended before it
    counts: Counts
    shape: tuple[int, ...]
    dtype: torch.dtype
    place: Place | None
    module: nn.Module | None
    call: Label | None  # the function call that it belongs to; of the forward pass for a backward operation
    node: str | None  # the graph node that ran, for a backward operation
    kind: str = "op"  # op, constant, external, uninitialised
    nan_birth: bool = False  # made a NaN where no operand held one
    inf_birth: bool = False  # made an infinity where every operand was finite
    parents: list[Parent] = field(default_factory=list)
    reading: Reading | None = None
    source: str = ""  # what an external tensor is: "parameter bank.table", "batch[0]", ...
    source_kind: str = ""  # parameter, buffer, state, grad, batch, unknown
    writes: str = ""  # what an optimizer's operation wrote to, in the same words
    reader: Reader | None = None  # of an external tensor: the line and module that first used it
    spot: Spot = None  # where in the line: see labels.columns
    trail: list[tuple[str, int]] = field(default_factory=list)  # the lines that led to `place`, the nearest first
    with_graph: bool = False  # a float operand was itself computed from parameters
    magnitudes: list[tuple[str, float]] = field(default_factory=list)


def span(t: Tensor) -> tuple[int, int, bool]:
    """The bytes of its storage that `t` may touch, as a half-open range, and whether it touches each of them."""
    size = t.element_size()
    start = int(t.storage_offset()) * size
    if t.numel() == 0:
        return start, start, True
    reach = int(sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))) + 1
    return start, start + reach * size, reach == t.numel()


MOST = 4096  # storages remembered before those that were freed are forgotten


class Tags:
    """Storage → the events whose bad values it still holds, with the bytes that each wrote."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Any, list[tuple[Event, int, int]]]] = {}
        self._limit = MOST

    def wrote(self, t: Tensor, event: Event | None) -> None:
        """Notes that `t` was just written: by `event`, or with finite values when None."""
        key = storage_key(t)
        held = self._held.get(key)
        if event is None and held is None:
            return
        low, high, dense = _span(t)
        kept = [] if held is None else [e for e in held[1] if not (dense and low <= e[1] and e[2] <= high)]
        if event is not None:
            kept.append((event, low, high))
        if kept:
            self._held[key] = (held[0] if held else _weak(t), kept)
            if len(self._held) > self._limit:
                self._forget()
        else:
            del self._held[key]

    def _forget(self) -> None:
        """Drops what belongs to memory that was freed; a long run would fill up with it."""
        self._held = {k: v for k, v in self._held.items() if isinstance(v[0], Tensor) or not v[0].expired()}
        self._limit = max(MOST, 2 * len(self._held))

    def alive(self) -> Iterator[Event]:
        """The events whose values are still held in memory."""
        for held, entries in list(self._held.values()):
            if isinstance(held, Tensor) or not held.expired():
                yield from (event for event, *_ in entries)

    def of(self, t: Tensor) -> list[Event]:
        """The events whose values `t` may hold, the latest first."""
        held = self._held.get(storage_key(t))
        if held is None:
            return []
        low, high, _ = _span(t)
        return [event for event, start, stop in reversed(held[1]) if start < high and low < stop]


def _base(t: Tensor) -> Tensor:
    return t if t.layout is torch.strided and not t.is_nested else plain(t)


def storage_key(t: Tensor) -> int:
    """Identifies the storage of `t` while it lives."""
    try:
        return _base(t).untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # a subclass without storage of its own
        return id(t)


def _span(t: Tensor) -> tuple[int, int, bool]:
    try:
        return span(_base(t))
    except (RuntimeError, NotImplementedError):
        return 0, 1, True


def _weak(t: Tensor) -> StorageWeakRef | Tensor:
    try:
        return StorageWeakRef(_base(t).untyped_storage())
    except (RuntimeError, NotImplementedError):
        return t
