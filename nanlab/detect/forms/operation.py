"""One operation as a rule sees it: operands by name, and their values at the element in question."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from nanlab.detect.state.values import bad_mask, first_true, largest, number

Value = Any  # a Python number, complex where the operands are, or None


@dataclass
class Reading:
    """A form as it was read: which, at which element of the result, and the operands' values there. `fits_wider` says
    of a result in 8 or 16 bits whether the next wider format holds it; None where that is not known."""

    form: str
    element: list[int]
    operands: dict[str, object] = field(default_factory=dict)
    note: str = ""
    fits_wider: bool | None = None


@dataclass
class Operation:
    """`name` is the bare name (``div`` for ``aten::div_.Tensor``); `given` maps argument names to what was passed, with
    the old values of overwritten tensors; `out` is the non-finite result; `node` and `call` name the graph node and the
    function of the program that it belongs to."""

    name: str
    given: dict[str, Any]
    out: Tensor
    node: str | None = None
    call: str | None = None
    lost: frozenset[str] = frozenset()  # arguments whose old values were overwritten and not kept
    nan: bool = False  # whether a NaN is asked about, or an infinity
    element: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.element = self._first()

    def _first(self) -> tuple[int, ...]:
        """The first bad element at which no operand is NaN already (or, when an infinity is asked about, bad already),
        else the first bad one."""
        bad = bad_mask(self.out, nan_only=self.nan)
        fresh = bad.clone()
        for t in self.tensors():
            if t.dim() <= self.out.dim() and _fits(t, self.out):
                fresh &= ~bad_mask(t, nan_only=self.nan).expand(self.out.shape)
        return first_true(fresh if bool(fresh.any()) else bad)

    def tensors(self) -> list[Tensor]:
        """The floating-point operands, lists included; without what was overwritten unseen."""
        found = []
        for name, value in self.given.items():
            for t in value if isinstance(value, list | tuple) else [value]:
                if isinstance(t, Tensor) and (t.is_floating_point() or t.is_complex()) and name not in self.lost:
                    found.append(t)
        return found

    def get(self, *names: str) -> Any:
        """The first of the arguments called `names` that was given; None when there is none."""
        return next((self.given[n] for n in names if self.given.get(n) is not None), None)

    def at(self, *names: str) -> Value:
        """The value of an argument at the element, by broadcasting; None when it has none there or was overwritten."""
        name = next((n for n in names if self.given.get(n) is not None), "")
        value = self.given.get(name)
        if isinstance(value, bool | int | float | complex):
            return value
        if not isinstance(value, Tensor) or name in self.lost or not _fits(value, self.out):
            return None
        return value.detach().expand(self.out.shape)[self.element].item()

    def result(self) -> Value:
        """The bad value itself."""
        return self.out.detach()[self.element].item()

    def found(self, form: str, /, note: str = "", **operands: object) -> Reading:
        """A reading at the element; without `operands`, with every operand's value there."""
        shown = operands or {n: v for n in self.given if (v := self.at(n)) is not None and not isinstance(v, bool)}
        return Reading(form, list(self.element), {k: number(v) for k, v in shown.items()}, note)

    def sizes(self) -> dict[str, Any]:
        """The largest finite magnitude of each operand."""
        named = ((n, v) for n, v in self.given.items() if isinstance(v, Tensor) and v.is_floating_point())
        return {f"max |{n}|": largest(v) for n, v in named if n not in self.lost}


def _fits(t: Tensor, out: Tensor) -> bool:
    try:
        return torch.broadcast_shapes(t.shape, out.shape) == out.shape
    except RuntimeError:
        return False


def is_nan(x: Value) -> bool:
    """Whether `x` is a NaN; False for None."""
    return x is not None and x != x


def is_inf(x: Value) -> bool:
    """Whether `x` is infinite; False for None."""
    return x is not None and abs(x) == math.inf


def subnormal(x: Value, dtype: torch.dtype) -> bool:
    """Whether `x` is nonzero and its inverse exceeds the largest number of `dtype`."""
    return x is not None and x != 0 and abs(x) < 1 / torch.finfo(dtype).max * (1 + torch.finfo(dtype).eps)
