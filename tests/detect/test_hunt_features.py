"""The hunt through what torch offers beside plain layers: hooks, checkpoints, vmap, compile, sparse and complex
tensors."""

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from nanlab.detect.replay.hunt import hunt


def small(inputs=4, outputs=4):
    return nn.Linear(inputs, outputs)


def test_a_partial_write_keeps_its_origin_when_the_rest_is_overwritten(marked):
    model = small(4, 3)

    def loss():
        h, buffer = model(torch.randn(2, 4)), torch.zeros(4, 3)
        buffer[0] = torch.log(h[0] * 0) * 0  # <- here
        buffer[1:] = torch.ones(3, 3)
        buffer[2] = h[1]
        return buffer.sum()

    report = hunt(loss, model)
    assert (report.form, report.line) == ("log(0)", marked(loss))


def test_memory_that_was_never_written_is_named_by_its_allocation(marked):
    model = small()
    before = torch.utils.deterministic.fill_uninitialized_memory

    def loss():
        torch.use_deterministic_algorithms(True)
        memory = torch.empty(3, 4)  # <- here
        torch.use_deterministic_algorithms(False)
        memory[0] = 1.0
        return (model(torch.randn(3, 4)) * memory).mean()

    torch.utils.deterministic.fill_uninitialized_memory = True  # which makes the garbage NaN
    try:
        report = hunt(loss, model)
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = before
    assert (report.form, report.op, report.suspect) == ("uninitialised memory", "empty", "bad_init_or_uninitialised")
    assert report.line == marked(loss)


@pytest.mark.parametrize("rows", [6, 100_000])
def test_an_in_place_division_is_found_with_and_without_its_old_values(rows, marked):
    model = small(4, 1)

    def loss():
        h, divisor = model(torch.ones(rows, 4)) * 1.0, torch.ones(rows, 1)
        divisor[5] = 0
        h.div_(divisor)  # <- here
        return h.mean()

    report = hunt(loss, model)
    assert (report.form, report.line, report.element) == ("x/0", marked(loss), [5, 0])
    assert (report.operands["numerator"] is None) == (rows == 100_000)


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x / x.abs()


def test_a_custom_functions_backward_is_named_by_its_own_line_and_the_call_is_told(marked):
    model = small()

    def loss():
        h = model(torch.randn(3, 4)) * 0
        return Sign.apply(h).mean()  # <- here

    report = hunt(loss, model, confirm=True)
    assert (report.where, report.op, report.form) == ("gradient", "div in Sign backward", "0/0")
    assert report.source() == ("return grad * x / x.abs()", "       ^^^^^^^^^^^^^^^^^^")
    assert report.trail[0] == (__file__, marked(loss)) and ("called", f"from {Path(__file__).name}:{marked(loss)}") in (
        report.facts()
    )
    assert "operand patched" in report.confirmed_by


def test_a_hook_on_a_tensor_is_named_by_its_own_line(marked):
    model = small()

    def hook(grad):
        zero = grad * 0
        return zero / zero.norm()  # <- here

    def loss():
        h = model(torch.randn(3, 4))
        h.register_hook(hook)
        return h.mean()

    assert hunt(loss, model).line == marked(hook)


def test_double_backward_finds_the_root_in_the_penalty(marked):
    model = nn.Sequential(small(), nn.ReLU(), small(4, 1))

    def loss():
        x = torch.full((3, 4), -100.0, requires_grad=True)
        (grad,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return (grad.square().sum(-1).sqrt() - 1).square().mean()  # <- here

    with torch.no_grad():
        model[0].weight.abs_()
    report = hunt(loss, model)
    assert (report.where, report.form, report.line) == ("gradient", "deriv_of_sqrt_at_0", marked(loss))


def piece(h):
    logs = torch.log(h)  # <- here
    return torch.where(h > 0, logs, torch.zeros_like(h))


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_is_looked_into(reentrant, marked):
    model = small()
    report = hunt(lambda: checkpoint(piece, model(torch.randn(3, 4)) * 0, use_reentrant=reentrant).mean(), model)
    assert (report.where, report.form, report.line) == ("gradient", "deriv_of_log_at_0", marked(piece))


def test_vmap_and_grad_transforms_are_looked_into(marked):
    model = small()

    def length(v):
        return torch.sqrt((v * v).sum())  # <- here

    def loss():
        slopes = torch.func.vmap(torch.func.grad(length))(torch.zeros(3, 4))
        return model(slopes).mean()

    report = hunt(loss, model)
    assert (report.form, report.line) == ("deriv_of_sqrt_at_0", marked(length))


def test_a_compiled_function_runs_eagerly_and_the_line_is_its_own(marked):
    model = small()

    def ratio(h):
        zero = h * 0
        return zero / zero  # <- here

    compiled = torch.compile(ratio, backend="eager")
    assert hunt(lambda: compiled(model(torch.randn(2, 4))).mean(), model).line == marked(ratio)


def test_complex_arithmetic_is_looked_into(marked):
    model = small()

    def loss():
        spectrum = torch.fft.fft(model(torch.randn(2, 4)) * 0)
        return (spectrum / spectrum.abs()).real.mean()  # <- here

    report = hunt(loss, model)
    assert (report.form, report.line) == ("0/0", marked(loss))


def test_a_sparse_gradient_is_looked_into(marked):
    model = nn.Embedding(5, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(model.parameters())

    def step():
        rows = model(torch.tensor([1, 2])) * torch.tensor([[1.0], [0.0]])
        rows.pow(2).sum(-1).sqrt().sum().backward()  # <- here
        optimizer.step()

    report = hunt(step, model, optimizer)
    assert (report.where, report.form, report.line) == ("gradient", "deriv_of_sqrt_at_0", marked(step))


class Plain(torch.Tensor):
    pass


def test_a_subclass_of_tensor_is_looked_into(marked):
    model = small()

    def loss():
        h = model(torch.randn(2, 4).as_subclass(Plain)) * 0
        return (h / h).mean()  # <- here

    assert hunt(loss, model).line == marked(loss)


def test_integers_that_divide_to_nan_are_looked_into(marked):
    model = small()

    def loss():
        share = torch.tensor([0, 2]) / torch.tensor([0, 1])  # <- here
        return model(torch.randn(2, 4)).mean() * share.sum()

    report = hunt(loss, model)
    assert (report.form, report.operands) == ("0/0", {"numerator": 0, "denominator": 0})


def test_a_python_number_taken_from_a_nan_is_followed_back(marked):
    model = small()

    def loss():
        weight = torch.zeros(0).mean().item()  # <- here
        return model(torch.randn(2, 4)).mean() * weight

    report = hunt(loss, model)
    assert (report.form, report.line) == ("0/0 (mean of empty)", marked(loss))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_sums_raise_no_alarm_and_overflow_is_found(dtype, marked):
    model = small(4, 4).to(dtype)
    many = torch.full((20_000, 4), 4.0, dtype=dtype)
    assert hunt(lambda: model(many).float().mean(), model).verdict == "finite"
    report = hunt(lambda: (model(many) * torch.finfo(dtype).max * 100).float().mean(), model)
    assert report.form in ("overflow", "inf written")


def test_autocast_is_looked_into(marked):
    model = small()

    def loss():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = model(torch.randn(3, 4)) * 1e20
            product = h @ h.t()  # <- here
        return product.float().mean()

    report = hunt(loss, model)
    assert (report.form, report.op, report.line) == ("overflow", "mm", marked(loss))


def test_a_cast_that_overflows_is_found(marked):
    model = small()

    def loss():
        h = model(torch.randn(3, 4)).abs() * 1e6 + 1e6
        return h.half().float().mean()  # <- here

    report = hunt(loss, model)
    assert (report.form, report.op, report.line) == ("overflow", "to", marked(loss))


def test_a_forward_hook_that_breaks_the_output_is_named(marked):
    model = nn.Sequential(small(), small(4, 1))

    def hook(module, args, output):
        return output / (output * 0)  # <- here

    model[0].register_forward_hook(hook)
    assert hunt(lambda: model(torch.randn(2, 4)).mean(), model).line == marked(hook)


def test_a_module_that_raised_and_was_caught_does_not_confuse_the_paths():
    class Refuses(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    model = nn.ModuleDict({"refuses": Refuses(), "fc": small()})

    def loss():
        with pytest.raises(ValueError, match="no"):
            model["refuses"](torch.ones(1))
        return torch.log(model["fc"](torch.randn(2, 4)) * 0).mean()

    assert hunt(loss, model).module == ""


def test_equal_singular_values_are_the_edge_of_the_decomposition(marked):
    model = nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.eye(3))

    def loss():
        u, _, _ = torch.linalg.svd(model(torch.eye(3)))  # <- here
        return (u * torch.arange(9.0).view(3, 3)).sum()

    report = hunt(loss, model)
    assert (report.where, report.form, report.line) == ("gradient", "deriv_of_svd_at_equal_values", marked(loss))


@pytest.mark.parametrize(
    ("call", "op", "form"),
    [
        (lambda h: F.layer_norm(h * 0, (4,), eps=0.0), "layer_norm", "0/0"),
        (lambda h: F.group_norm(h * 1e25, 2), "group_norm", "overflow"),
        (lambda h: F.cross_entropy(h, torch.full((3,), -100)), "nll_loss", "0/0"),
        (lambda h: F.scaled_dot_product_attention(h[None, None] * 1e25, h[None, None] * 1e25, h[None, None]),
         "scaled_dot_product_attention", "overflow"),
        (lambda h: torch.logdet(torch.diag(h[0].abs() + 1) * torch.tensor([-1.0, 1, 1, 1])), "logdet", "log(<0)"),
        (lambda h: torch.linalg.norm(h.abs() * 1e30 + 1e30), "norm", "overflow"),
        (lambda h: torch.lgamma(h * 0), "lgamma", "lgamma(<=0)"),
        (lambda h: torch.erfinv(h * 0 + 1), "erfinv", "erfinv(1)"),
        (lambda h: (h.abs() * 1e30 + 1e30).cumprod(-1), "cumprod", "overflow"),
        (lambda h: F.ctc_loss(h[:2, None].log_softmax(-1), torch.tensor([[1, 1, 2]]), torch.tensor([2]),
                              torch.tensor([3])),
         "ctc_loss", "log(0)"),
        (lambda h: torch.einsum("ij,kj->ik", h.abs() * 1e25 + 1e25, h.abs() * 1e25 + 1e25), "bmm", "overflow"),
        (lambda h: F.conv1d(h[None].abs() * 1e25 + 1e25, torch.full((1, 3, 1), 1e25)), "convolution", "overflow"),
    ],
)  # fmt: skip
def test_fused_operations_have_their_forms(call, op, form):
    model = small()
    report = hunt(lambda: call(model(torch.randn(3, 4))).mean(), model)
    assert (report.op, report.form) == (op, form), str(report)


def test_a_recurrent_layer_that_overflows_is_named_by_the_call(marked):
    model = nn.RNN(3, 4, nonlinearity="relu", batch_first=True)
    with torch.no_grad():
        model.weight_hh_l0.copy_(3 * torch.eye(4))

    def loss():
        return model(torch.rand(2, 120, 3) + 1)[0].mean()  # <- here

    report = hunt(loss, model)
    assert (report.form, report.suspect, report.line) == ("overflow", "exploding_gradients", marked(loss))


def test_nested_batches_name_the_leaf():
    model, bad = small(), torch.randn(2, 4)
    bad[0, 0] = math.nan
    report = hunt(lambda: model(bad).mean(), model, batch={"a": [torch.zeros(1), {"x": bad}]})
    assert report.op == "nan in batch['a'][1]['x']"


@pytest.mark.parametrize(("method", "number"), [("mul_", 1e30), ("add_", 3e38)])
def test_an_in_place_operation_with_a_large_number_is_watched(method, number, marked):
    model = small()

    def loss():
        h = (model(torch.ones(2, 4)).abs() + 1) * 1e38
        getattr(h, method)(number)  # <- here
        return h.mean() * 1e-38

    report = hunt(loss, model)
    assert (report.form, report.line) == ("overflow", marked(loss))


def test_an_in_place_operation_with_a_small_number_keeps_what_was_bad(marked):
    model = small()

    def loss():
        h = torch.log(model(torch.ones(2, 4)) * 0)  # <- here
        h.mul_(0.5).add_(1.0)
        return h.mean()

    report = hunt(loss, model)
    assert (report.form, report.line) == ("log(0)", marked(loss))
