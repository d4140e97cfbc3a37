"""Remembers the latest results, weakly, so that the magnitudes before an origin can be told at no cost to a clean
step."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from nanlab.detect.state.values import largest
from nanlab.detect.trace.labels import Label
from nanlab.detect.trace.program import Program

KEPT = 64  # results remembered
SHOWN = 6  # lines shown


class Recent:
    """A ring of weak references to the storages of the latest results, with the call that made each."""

    def __init__(self) -> None:
        self._ring: deque[tuple[StorageWeakRef, torch.dtype, str, Label | None]] = deque(maxlen=KEPT)

    def note(self, t: Tensor, func, program: Program) -> None:
        """Remembers `t`, just made by the operation `func`."""
        if t.layout is not torch.strided or t.is_nested or not t.is_floating_point():
            return
        node = torch._C._current_autograd_node()
        label = program.made.of(node) if node is not None else program.stack[-1] if program.stack else None
        name = node.name() if node is not None else func.__name__.split(".")[0]
        try:
            self._ring.append((StorageWeakRef(t.untyped_storage()), t.dtype, name, label))
        except (RuntimeError, NotImplementedError):
            return  # a subclass without storage of its own

    def magnitudes(self, but: Label | None = None) -> list[tuple[str, float]]:
        """``(line and operation, largest magnitude)`` of the latest distinct lines, the latest last. Results whose
        memory was freed in the meantime are left out, and so are those of the call `but`."""
        found: dict[str, float] = {}
        for ref, dtype, name, label in reversed(self._ring):
            storage = torch.UntypedStorage._new_with_weak_ptr(ref.cdata)
            if storage is None or label is None or label.place is None or label is but or not storage.nbytes():
                continue
            where = f"{label.place} {name}"
            if where not in found:
                found[where] = largest(torch.empty(0, dtype=dtype, device=storage.device).set_(storage))
            if len(found) == SHOWN:
                break
        return list(found.items())[::-1]
