"""Forms of sums, means, deviations, norms and products along a dimension."""

from __future__ import annotations

import torch
from torch import Tensor

from nanlab.detect.forms.known import note, rule
from nanlab.detect.forms.operation import Operation, Reading, is_inf, is_nan

note("logsumexp", masks=True)


@rule("sum", "nansum", "logsumexp", "cumsum_backward", "logcumsumexp", "trace", "index_add", "scatter_add",
      "scatter_reduce", "segment_reduce", "_embedding_bag", "avg_pool1d", "avg_pool2d", "avg_pool3d",
      "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_adaptive_avg_pool1d", "upsample_bilinear2d",
      "upsample_linear1d",
      "upsample_bicubic2d", "upsample_trilinear3d", "_fft_r2c", "_fft_c2c", "_fft_c2r")  # fmt: skip
def total(op: Operation) -> Reading | None:
    x = op.get("self")
    if isinstance(x, Tensor) and is_nan(op.result()) and bool(x.isinf().any()):
        return op.found("inf-inf", **op.sizes())
    return op.found("overflow", **op.sizes()) if is_inf(op.result()) else None


@rule("mean", "nanmean", counts="elements")
def mean(op: Operation) -> Reading | None:
    if is_nan(op.result()) and _reduced(op) == 0:
        return op.found("0/0 (mean of empty)", sum=0, count=0)
    return total(op)


note("std", "std_mean", edge="0", edge_of="std")


@rule("var", "std", "var_mean", "std_mean", counts="elements")
def deviation(op: Operation) -> Reading | None:
    count, correction = _reduced(op), op.get("correction")
    if count - (1 if correction is None else correction) <= 0:
        return op.found("0/0: too few elements", elements=count, correction=1 if correction is None else correction)
    return total(op) or op.found("overflow", note="of the squares", **op.sizes())


def _reduced(op: Operation) -> int:
    """How many elements go into one result."""
    x, dim = op.get("self"), op.get("dim")
    if not isinstance(x, Tensor):
        return 1
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return x.numel()
    sizes = [x.shape[d] for d in (dim if isinstance(dim, list | tuple) else [dim])] if x.dim() else [1]
    return int(torch.tensor(sizes).prod())


note("norm", edge="0")
note("linalg_vector_norm", edge="0", edge_of="norm", deep=True, shown="norm")
note("_weight_norm_interface", edge="0", edge_of="weight_norm")


@rule("linalg_vector_norm", "norm", "frobenius_norm", "_weight_norm_interface", "dist", "_cdist_forward",
      "_euclidean_dist", "_pdist_forward", "renorm")  # fmt: skip
def norm(op: Operation) -> Reading | None:
    sizes = op.sizes()
    if op.name == "_weight_norm_interface" and is_nan(op.result()):
        return op.found("0/0", note="the direction has norm zero", **sizes)
    if is_inf(op.result()):
        return op.found("overflow", note="of the squares", **sizes)
    return op.found("inf-inf", **sizes) if any(bool(t.isinf().any()) for t in op.tensors()) else None


@rule("prod", "cumprod", edge="0", deep=True)
def repeated(op: Operation) -> Reading | None:
    return op.found("0*inf" if is_nan(op.result()) else "overflow", **op.sizes())
