"""Counts what is not finite in a tensor, and cheaply says when nothing is.

A sum is finite only if every term is, and reading a tensor once to add it up costs about a thirtieth of
``isfinite(x).all()``. So the screen is a sum, in float32 or wider, and the exact count is made only on a hit.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

WIDE = {torch.float32, torch.float64}  # sums of fp16, bf16 and fp8 overflow or are missing; those are added in fp32


@dataclass(frozen=True)
class Counts:
    """What a tensor holds that is not finite. `element` is the index of the first such value in row-major order
    (``[]`` for a 0-dim tensor); `nan_element` that of the first NaN, or None. Complex values count as NaN when either
    part is NaN, else as ``+inf`` or ``-inf`` by their real part, or their imaginary one where the real is finite."""

    nan: int
    posinf: int
    neginf: int
    total: int
    element: tuple[int, ...]
    nan_element: tuple[int, ...] | None

    @property
    def inf(self) -> int:
        return self.posinf + self.neginf

    @property
    def bad(self) -> int:
        return self.nan + self.inf

    def __str__(self) -> str:
        parts = [f"{n} {name}" for n, name in ((self.nan, "nan"), (self.posinf, "inf"), (self.neginf, "-inf")) if n]
        return f"{', '.join(parts)} of {self.total}"


def is_numeric(t: Tensor) -> bool:
    """Whether `t` has a dtype that can hold a non-finite value, and has values to look at."""
    return (t.dtype.is_floating_point or t.dtype.is_complex) and t.device.type != "meta"


def plain(t: Tensor) -> Tensor:
    """The strided real values of `t`, detached: a sparse tensor's stored values, a complex tensor's two parts, a
    subclass's own data where it is a thin wrapper. A view where that is possible."""
    t = t.detach()
    if t.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        t = t.values()
    elif t.layout is torch.sparse_coo:
        t = t._values()
    elif t.is_nested:
        t = t.values()
    if t.is_quantized:
        t = t.dequantize()
    return torch.view_as_real(t.resolve_conj().resolve_neg()) if t.is_complex() else t


def is_finite(t: Tensor) -> bool:
    """Whether every value of `t` is finite. One pass over the data; a second, exact one only if the sum is not finite
    (a sum of finite values can overflow). True for integers, booleans and empty tensors."""
    common = t.dtype in WIDE and t.layout is torch.strided and t.device.type == "cpu" and not t.is_nested
    if common and math.isfinite((t.detach() if t.requires_grad else t).sum().item()):
        return True
    if not is_numeric(t) or t.numel() == 0:
        return True
    t = _real(t)
    total = t.sum(dtype=None if t.dtype in WIDE else torch.float32).item()
    return math.isfinite(total) or bool(torch.isfinite(t).all())


def bad_mask(t: Tensor, nan_only: bool = False) -> Tensor:
    """A boolean tensor of the shape of `t`: where it is NaN, or (unless `nan_only`) infinite."""
    x = _real(t)
    mask = x.isnan() if nan_only else ~x.isfinite()
    return mask.any(-1) if t.is_complex() else mask


def _real(t: Tensor) -> Tensor:
    x = plain(t)
    return x.float() if x.dtype.itemsize == 1 else x


def count(t: Tensor) -> Counts | None:
    """Exactly what of `t` is not finite; None when all of it is finite. Sparse tensors are counted over their stored
    values, and the element is an index into those."""
    if is_finite(t):
        return None
    x = _real(t)
    nan = x.isnan()
    plus, minus = x.isposinf(), x.isneginf()
    if t.is_complex():
        nan = nan.any(-1)
        plus, minus = plus.any(-1) & ~nan, minus.any(-1) & ~plus.any(-1) & ~nan
    bad = nan | plus | minus
    return Counts(
        nan=int(nan.sum()),
        posinf=int(plus.sum()),
        neginf=int(minus.sum()),
        total=bad.numel(),
        element=first_true(bad),
        nan_element=first_true(nan) if bool(nan.any()) else None,
    )


def first_true(mask: Tensor) -> tuple[int, ...]:
    """The index of the first True of `mask` in row-major order; ``()`` for a 0-dim mask."""
    flat = int(mask.reshape(-1).to(torch.uint8).argmax())
    return tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), mask.shape)) if mask.dim() else ()


def largest(t: Tensor) -> float:
    """The largest finite magnitude in `t`; 0.0 when there is none."""
    x = _real(t)
    x = x[x.isfinite()]
    return float(x.abs().max()) if x.numel() else 0.0


def number(value: Any) -> float | int | str | None:
    """A Python number that JSON can hold: non-finite floats and complex numbers become strings."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, complex):
        return str(value)
    return value if math.isfinite(value) else str(value)
