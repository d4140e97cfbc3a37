"""Remembers the latest results, weakly, so that the magnitudes of what fed an origin can be told at no cost to a clean
step.

A result is read later, and only where it still is what the operation made: its memory was neither freed nor written to
since, and no more of it is read than the operation wrote.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from nanlab.detect.forms import function_of, known
from nanlab.detect.state.values import largest
from nanlab.detect.trace.labels import Label
from nanlab.detect.trace.program import Program
from nanlab.detect.trace.provenance import storage_key

KEPT = 64  # results remembered
SHOWN = 6  # lines shown


class Made(NamedTuple):
    """A result: its storage, held weakly so that no other takes the address; the storages of its operands; where in the
    storage it lies; and what made it (no label: it is not to be shown)."""

    storage: StorageWeakRef
    operands: tuple[int, ...]
    layout: tuple[torch.dtype, int, Sequence[int], Sequence[int]]
    name: str
    label: Label | None

    def value(self) -> Tensor | None:
        """The result, while its memory is there."""
        storage = torch.UntypedStorage._new_with_weak_ptr(self.storage.cdata)
        if storage is None or not storage.nbytes():
            return None
        dtype, offset, size, stride = self.layout
        return torch.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, size, stride)


class Recent:
    """A ring of the latest results, with the call that made each."""

    def __init__(self) -> None:
        self._ring: deque[Made] = deque(maxlen=KEPT)

    def note(self, t: Tensor, func, args: tuple, program: Program, shown: bool = True) -> None:
        """Remembers `t`, just made or written by the operation `func` of `args`."""
        if t.layout is not torch.strided or t.is_nested or not t.is_floating_point():
            return
        node = torch._C._current_autograd_node() if shown else None
        label = program.made.of(node) if node is not None else program.stack[-1] if shown and program.stack else None
        name = node.name() if node is not None else func.__name__
        try:
            operands = tuple(a.untyped_storage()._cdata for a in args if isinstance(a, Tensor))
            layout = t.dtype, int(t.storage_offset()), t.shape, t.stride()
            self._ring.append(Made(StorageWeakRef(t.untyped_storage()), operands, layout, name, label))
        except (RuntimeError, NotImplementedError):
            return  # a subclass without storage of its own

    def magnitudes(self, operands: Iterable[Tensor], written: Iterable[Tensor] = (), but: Label | None = None
                   ) -> list[tuple[str, float]]:  # fmt: skip
        """``(line and operation, largest magnitude)`` of the latest distinct lines that fed `operands`, the latest
        last. What is gone, was overwritten since or is among `written` is left out, and so are results of the call
        `but`."""
        found: dict[str, float] = {}
        for made in self._fed(operands, written):
            place = made.label.place if made.label is not None and made.label is not but else None
            if place is None or known(made.name.split(".")[0]).fills or (t := made.value()) is None:
                continue
            found.setdefault(f"{place} {function_of(made.name)}", largest(t))
            if len(found) == SHOWN:
                break
        return list(found.items())[::-1]

    def _fed(self, operands: Iterable[Tensor], written: Iterable[Tensor]) -> Iterator[Made]:
        """What fed `operands`, the latest first, and of each storage only what was written to it last."""
        wanted, seen = {storage_key(t) for t in operands}, {storage_key(t) for t in written}
        for made in reversed(self._ring):
            key = made.storage.cdata
            if key in wanted:
                wanted.update(made.operands)
                if key not in seen:
                    yield made
            seen.add(key)
