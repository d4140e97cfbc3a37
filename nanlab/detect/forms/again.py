"""Runs an operation once more, in a wider format or as it was: what decides whether the format was at fault."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from nanlab.detect.forms.operation import Operation, is_nan
from nanlab.detect.state.values import is_finite

HALF = {torch.float16, torch.float8_e4m3fn, torch.float8_e5m2}
WIDER = {**dict.fromkeys((*HALF, torch.bfloat16), torch.float32), torch.float32: torch.float64}


def fits_wider(func, args: tuple, kwargs: dict, out: Tensor) -> bool | None:
    """Whether `func` of the same operands is finite in the next wider format than that of `out`; None where that cannot
    be told. Costs one run of the operation on copies."""
    wider = WIDER.get(out.dtype)
    return None if wider is None else _finite(func, args, kwargs, wider)


def unexplained(op: Operation, func, args: tuple, kwargs: dict) -> tuple[str, str]:
    """The form (and a note on it) of a result that no rule explains, from what the operation makes of the same operands
    in a wider format and of the same operands again."""
    if any(bool(t.isinf().any()) for t in op.tensors()):
        return f"{op.name}(inf)", ""
    if op.node is not None and op.name.endswith("_backward") and isinstance(x := op.at("self"), float):
        return f"deriv_of_{op.name.removesuffix('_backward')}_at_{x:.4g}", ""
    if any(bool(t.isnan().any()) for t in op.tensors()):
        return "unknown", ""
    again = _finite(func, args, kwargs, None)
    if again is not False:
        return "unknown", "run again, the same operands give a finite result" if again else ""
    if not is_nan(op.result()) and fits_wider(func, args, kwargs, op.out) is not False:
        return "overflow", ""
    return ("outside domain" if is_nan(op.result()) else "pole"), ""


def _finite(func, args: tuple, kwargs: dict, dtype: torch.dtype | None) -> bool | None:
    def copied(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.detach().to(dtype if dtype and value.is_floating_point() else value.dtype, copy=True)
        return dtype if dtype is not None and isinstance(value, torch.dtype) and value.is_floating_point else value

    try:
        made = func(*tree_map(copied, args), **tree_map(copied, kwargs))
        return all(is_finite(t) for t in tree_leaves(made) if isinstance(t, Tensor))
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return None
