"""Forms of fused optimizer steps, and the unpacking of operations on lists of tensors."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nanlab.detect.forms.known import rule
from nanlab.detect.forms.operation import Operation, Reading


@rule("_fused_adam", "_fused_adamw", "_fused_adagrad", "_fused_sgd")
def fused(op: Operation) -> Reading | None:
    """A fused step is judged by what it was given: an epsilon of zero, or gradients too large to square."""
    if op.get("eps") == 0 and op.name != "_fused_sgd":
        return op.found("0/0", note="no second moment, and an epsilon of zero", eps=0.0)
    return op.found("overflow", gradient=op.at("grads"))


def unpack(name: str, given: dict[str, Any], out: Tensor) -> tuple[str, dict[str, Any]]:
    """For an operation on lists (``_foreach_div_``, ``_fused_adam_``): the name of the one operation, and the operands
    that belong to `out` in each list."""
    lists = {k: v for k, v in given.items() if isinstance(v, list | tuple) and v and isinstance(v[0], Tensor)}
    if not name.startswith(("_foreach_", "_fused_")) or not lists:
        return name, given
    first = next(iter(lists.values()))
    index = next((i for v in lists.values() for i, t in enumerate(v) if t is out), None)
    if index is None:
        index = next((i for i, t in enumerate(first) if t.shape == out.shape), 0)
    picked = {k: v[index] if k in lists and index < len(v) else v for k, v in given.items()}
    for key, value in given.items():  # a list of one scalar for each tensor
        if isinstance(value, list | tuple) and key not in lists and len(value) == len(first):
            picked[key] = value[index]
    return (name.removeprefix("_foreach_") if name.startswith("_foreach_") else name), picked

