"""Forms of operations that do many steps at once: softmax, attention, normalisation, losses, linear algebra."""

from __future__ import annotations

import torch
from torch import Tensor

from nanlab.detect.forms.known import note, rule
from nanlab.detect.forms.operation import Operation, Reading, is_inf, is_nan

MASKED = "inf-inf: fully masked"


note("softmax", probability=True)


@rule("softmax", "log_softmax", "_safe_softmax", "_masked_softmax", "_sparse_softmax", masks=True)
def softmax(op: Operation) -> Reading | None:
    x = op.get("self")
    dim = op.get("dim")
    if not isinstance(x, Tensor) or not isinstance(dim, int) or x.dim() == 0 or x.shape != op.out.shape:
        return None
    at: list[int | slice] = list(op.element)
    at[dim] = slice(None)
    row = x.detach()[tuple(at)]
    if bool(row.isneginf().all()):
        return op.found(MASKED, row="all -inf")
    if bool(row.isposinf().any()):
        return op.found("inf-inf", note="the row's largest value is inf", largest=row.max().item())
    return op.found("overflow", largest=row.max().item(), smallest=row.min().item())


@rule("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
      "_scaled_dot_product_efficient_attention", "_scaled_dot_product_attention_math",
      "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_fused_attention_overrideable",
      "_flash_attention_forward", "_efficient_attention_forward", "scaled_dot_product_attention",
      "_native_multi_head_attention", "_transformer_encoder_layer_fwd", "_flex_attention", masks=True)  # fmt: skip
def attention(op: Operation) -> Reading | None:
    mask = op.get("attn_mask", "attn_bias")
    if isinstance(mask, Tensor):
        hidden = mask.isneginf() if mask.is_floating_point() else ~mask if mask.dtype is torch.bool else mask == 0
        if bool(hidden.all(-1).any()):
            return op.found(MASKED, row="all keys masked")
    if any(bool(t.isinf().any()) for t in op.tensors() if t is not mask):
        return op.found("inf-inf", **op.sizes())
    return op.found("overflow", note="of query times key", **op.sizes())


note("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", writes=("running_mean", "running_var"))
note("native_layer_norm", shown="layer_norm")
note("native_batch_norm", shown="batch_norm")
note("native_group_norm", shown="group_norm")


@rule("native_layer_norm", "native_batch_norm", "_native_batch_norm_legit", "native_group_norm", "batch_norm",
      "_native_batch_norm_legit_functional", "cudnn_batch_norm", "miopen_batch_norm", "_fused_rms_norm", "rms_norm",
      "_batch_norm_with_update", "_native_batch_norm_legit_no_training", "batch_norm_stats", "layer_norm",
      "group_norm", "instance_norm")  # fmt: skip
def normalisation(op: Operation) -> Reading | None:
    x, eps = op.get("input", "self"), op.get("eps")
    if isinstance(x, Tensor) and bool(x.isinf().any()):
        return op.found("inf-inf", **op.sizes())
    variance = op.get("running_var", "running_variance")
    if isinstance(variance, Tensor) and bool((variance + (eps or 0) < 0).any()):
        return op.found("sqrt(<0)", variance=variance.min().item(), eps=eps)
    if not eps or torch.tensor(eps, dtype=op.out.dtype) == 0:
        return op.found("0/0", note="no variance, and an epsilon of zero", eps=eps)
    return op.found("overflow", note="of the squares", eps=eps, **op.sizes())


note("nll_loss_forward", "nll_loss2d_forward", shown="nll_loss")
note("cross_entropy", "nll_loss_nd", counts="targets")


@rule("nll_loss_forward", "nll_loss2d_forward", "nll_loss", "cross_entropy_loss", "nll_loss2d", counts="targets")
def likelihood(op: Operation) -> Reading | None:
    x, target, ignore = op.get("self"), op.get("target"), op.get("ignore_index")
    counted = target[target != ignore] if isinstance(target, Tensor) and isinstance(ignore, int) else None
    weight = op.get("weight")
    if counted is not None and (counted.numel() == 0 or (isinstance(weight, Tensor) and not weight[counted].any())):
        return op.found("0/0: all targets ignored", targets=target.numel(), counted=int(counted.numel()))
    if isinstance(x, Tensor) and x.numel() == 0:
        return op.found("0/0 (mean of empty)", targets=0)
    return op.found("0*inf" if is_nan(op.result()) else "overflow", **op.sizes())


@rule("ctc_loss", "_cudnn_ctc_loss", "_use_cudnn_ctc_loss", "_ctc_loss_backward", counts="frames")
def alignment(op: Operation) -> Reading | None:
    lengths, labels = op.get("input_lengths"), op.get("target_lengths")
    shown = {"frames": _shortest(lengths), "labels": _shortest(labels)}
    return op.found("log(0): no alignment", **{k: v for k, v in shown.items() if v is not None})


def _shortest(lengths: object) -> str | None:
    values = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return ", ".join(map(str, values)) if isinstance(values, list | tuple) else None


@rule("binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "smooth_l1_loss", "huber_loss",
      "l1_loss", "soft_margin_loss", "poisson_nll_loss", "kl_div", "multi_margin_loss")  # fmt: skip
def pointwise_loss(op: Operation) -> Reading | None:
    x = op.get("self")
    if isinstance(x, Tensor) and x.numel() == 0:
        return op.found("0/0 (mean of empty)", targets=0)
    if is_inf(op.result()):
        return op.found("overflow", **op.sizes())
    return op.found("inf-inf", **op.sizes()) if any(bool(t.isinf().any()) for t in op.tensors()) else None


@rule("logdet", "linalg_slogdet", "slogdet", square=True)
def log_determinant(op: Operation) -> Reading | None:
    return op.found("log(<0)" if is_nan(op.result()) else "log(0)", note="of the determinant")


note("inv", "cholesky", "svd", square=True)
note("linalg_svd", "linalg_eigh", "linalg_eig", edge="equal_values", deep=True)
note("linalg_qr", edge="rank_loss", deep=True)


@rule("linalg_inv_ex", "linalg_solve_ex", "linalg_inv", "linalg_solve", "linalg_solve_triangular", "inverse",
      "triangular_solve", "cholesky_inverse", "cholesky_solve", "linalg_lu_solve", "linalg_ldl_solve", "linalg_pinv",
      "linalg_lstsq", "linalg_cholesky_ex", "linalg_cholesky", "linalg_lu_factor_ex", "linalg_eigh", "linalg_svd",
      "linalg_eig", "linalg_qr", "linalg_householder_product", "linalg_eigvals", "geqrf", "ormqr",
      square=True)  # fmt: skip
def matrix(op: Operation) -> Reading | None:
    if any(bool(t.isinf().any()) for t in op.tensors()):
        return op.found("inf-inf", **op.sizes())
    return op.found("singular matrix", **op.sizes())


@rule("linalg_det", "det", "linalg_matrix_exp", "matrix_exp", "linalg_matrix_power", square=True)
def determinant(op: Operation) -> Reading | None:
    return op.found("overflow", **op.sizes())
