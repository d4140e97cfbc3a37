"""Forms of matrix products, convolutions and attention: read from the row and the column that meet at the element."""

from __future__ import annotations

from torch import Tensor

from nanlab.detect.forms.known import rule
from nanlab.detect.forms.operation import Operation, Reading, is_nan


@rule("mm", "bmm", "matmul", "linear", "mv", "dot", "vdot", "addmm", "baddbmm", "addmv", "addbmm", "addr", "outer",
      "ger", "_addmm_activation", "einsum", "bilinear", "_trilinear", "convolution", "_convolution",
      "mkldnn_convolution", "thnn_conv2d", "convolution_overrideable", "convolution_backward", "mkldnn_linear",
      "_mkl_linear", "slow_conv_dilated2d", "slow_conv3d_forward", "_sparse_mm", "_sparse_addmm",
      "mkldnn_rnn_layer", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "_cudnn_rnn", "linear_backward",
      "_scaled_mm", "_grouped_mm", "int_mm", "sspaddmm", "smm", "hspmm",)  # fmt: skip
def matrix_product(op: Operation) -> Reading | None:
    if not is_nan(op.result()):
        return op.found("overflow", **op.sizes())
    if not any(bool(t.isinf().any()) for t in op.tensors()):
        return op.found("overflow", note="infinities of both signs inside the sum", **op.sizes())
    return op.found("0*inf" if zero_meets_infinity(op) else "inf-inf", **op.sizes())


def zero_meets_infinity(op: Operation) -> bool:
    """Whether in the sum at the element some product is zero times infinity. For products of two matrices it is read
    from the row and the column; for others from whether both values occur at all."""
    a, b = op.get("self", "mat1", "batch1"), op.get("mat2", "batch2", "vec", "tensor")
    if op.get("mat1", "batch1") is not None:
        a = op.get("mat1", "batch1")
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dim() >= 2 and b.dim() >= 2 and len(op.element) >= 2:
        x, y = a[op.element[:-1]], b[op.element[:-2]][:, op.element[-1]]
        if x.shape == y.shape:
            return bool((((x == 0) & y.isinf()) | (x.isinf() & (y == 0))).any())
    return any(bool((t == 0).any()) for t in op.tensors())
