"""One step under the hunt: what went bad in forward, loss, backward and data; and what is left alone."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nanlab.detect.replay.hunt import hunt

INF = float("inf")


class Linear(nn.Module):
    def __init__(self, inputs=4, outputs=4):
        super().__init__()
        self.fc = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.fc(x)


class Direction(nn.Module):
    def forward(self, x):
        return x / x.norm(dim=-1, keepdim=True)  # <- here


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4, padding_idx=0)
        self.norm = Direction()

    def forward(self, ids):
        return self.norm(self.embed(ids))


def test_a_padding_row_is_found_with_line_module_element_and_operands(marked):
    model = Encoder()
    report = hunt(lambda: model(torch.tensor([[1, 2, 0]])).mean(), model)
    assert (report.verdict, report.where, report.op, report.form) == ("non-finite", "forward", "div", "0/0")
    assert (report.line, report.module, report.element) == (marked(Direction), "norm", [0, 2, 0])
    assert report.operands == {"numerator": 0.0, "denominator": 0.0}
    assert report.suspect == "log_or_div_of_zero" and report.lesson == "03_padding_row"


def test_a_loss_function_is_the_loss_and_a_module_is_forward(marked):
    model = Linear()

    def loss():
        return torch.log(model(torch.randn(2, 4)).abs() - 100).mean()  # <- here

    report = hunt(loss, model)
    assert (report.where, report.form, report.line) == ("loss", "log(<0)", marked(loss))


def test_a_model_that_returns_its_loss_made_it_in_the_loss():
    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Linear(4, 1)

        def forward(self, x):
            return torch.exp(self.net(x).abs() + 1000).mean()

    model = WithLoss()
    assert hunt(lambda: model(torch.randn(2, 4)), model).where == "loss"


def test_a_derivative_that_is_infinite_where_the_value_is_fine(marked):
    model = Linear()

    def loss():
        h = model(torch.randn(3, 4)) * 0
        distance = h.pow(2).sum(-1).sqrt()  # <- here
        return distance.mean()

    report = hunt(loss, model)
    assert (report.where, report.op, report.form) == ("gradient", "sqrt backward", "deriv_of_sqrt_at_0")
    assert report.line == marked(loss) and report.suspect == "hidden_gradient"
    assert any("first NaN came of it by 0*inf" in note for note in report.notes)


def test_a_masked_branch_is_a_gradient_that_backward_brings_in(marked):
    model = Linear()

    def loss():
        h = model(torch.randn(3, 4)) * 1e4
        grown = torch.exp(h)  # <- here
        return torch.where(h > 20, h, torch.log1p(grown)).mean()

    report = hunt(loss, model)
    assert (report.where, report.form, report.op) == ("gradient", "0*inf", "exp backward")
    assert report.line == marked(loss)


def test_a_mask_divided_by_a_learned_temperature_is_the_division_and_not_the_mask(marked):
    model, temperature = Linear(), nn.Parameter(torch.tensor(0.3))
    model.temperature = temperature
    hidden = torch.tensor([False, False, False, True])

    def loss():
        scores = model(torch.randn(2, 4)).masked_fill(hidden, -INF)
        scores = scores / temperature  # <- here
        return F.cross_entropy(scores, torch.zeros(2, dtype=torch.long))

    report = hunt(loss, model)
    assert (report.where, report.form, report.line) == ("gradient", "0*inf", marked(loss))


def test_a_fully_masked_row_is_the_softmax_and_not_the_mask(marked):
    model = Linear()

    def loss():
        scores = model(torch.randn(2, 4)).masked_fill(torch.ones(4, dtype=torch.bool), -INF)
        return torch.softmax(scores, -1).mean()  # <- here

    report = hunt(loss, model)
    assert (report.op, report.form, report.suspect) == ("softmax", "inf-inf", "fully_masked_attention")
    assert report.line == marked(loss)


def test_a_written_infinity_that_reaches_the_loss_is_said_to_be_written(marked):
    model = Linear()

    def loss():
        return model(torch.randn(2, 4)).masked_fill(torch.ones(4, dtype=torch.bool), -INF).mean()  # <- here

    report = hunt(loss, model)
    assert (report.form, report.line) == ("inf written", marked(loss))


@pytest.mark.parametrize("nested", [lambda x, y: (x, y), lambda x, y: {"x": x, "y": [y]}])
def test_an_input_that_is_bad_is_named_with_the_line_that_read_it(nested, marked):
    model, x, y = Linear(), torch.randn(3, 4), torch.randn(3, 4)
    x[1, 2] = math.nan
    batch = nested(x, y)

    def loss():
        return F.mse_loss(model(x), y)

    report = hunt(loss, model, batch=batch)
    assert (report.where, report.form, report.suspect) == ("input", "nan_in", "bad_data")
    assert report.op == ("nan in batch[0]" if isinstance(batch, tuple) else "nan in batch['x']")
    assert report.module == "fc" and report.element == [1, 2]


def test_a_target_that_is_bad_is_no_input(marked):
    model, x, y = Linear(), torch.randn(3, 4), torch.randn(3, 4)
    y[2, 0] = INF

    def loss():
        return F.mse_loss(model(x), y)  # <- here

    report = hunt(loss, model, batch=(x, y))
    assert (report.where, report.form, report.op, report.line) == ("target", "inf_in", "inf in batch[1]", marked(loss))


def test_a_weight_that_was_bad_before_is_named_even_when_no_result_shows_it_yet():
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 1))
    with torch.no_grad():
        model[0].weight[4] = math.nan
    report = hunt(lambda: model(torch.tensor([0, 1])).mean(), model)
    assert (report.where, report.form, report.module, report.op) == ("weights", "nan_in", "0", "nan in parameter")
    assert any("0.weight" in note for note in report.notes)


def test_gradients_left_over_from_before_are_named():
    model = Linear()
    model(torch.randn(2, 4)).mean().backward()
    model.fc.weight.grad[0, 0] = math.nan
    report = hunt(lambda: model(torch.randn(2, 4)).mean(), model)
    assert (report.where, report.form, report.module) == ("gradient", "nan_in", "fc")


def test_too_few_elements_and_nothing_to_average(marked):
    model = Linear()

    def deviation():
        return model(torch.randn(1, 4)).std(0).mean()

    def empty():
        return model(torch.randn(1, 4))[1:].mean()

    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert hunt(deviation, model).suspect == "empty_reduction"
    assert hunt(empty, model).form == "0/0 (mean of empty)"


def test_zeros_left_by_an_underflow_are_told_from_exact_zeros():
    model = Linear()

    def underflow():
        weights = torch.exp(-model(torch.randn(2, 4)).abs() * 1e6 - 1e4)
        return (weights / weights.sum(-1, keepdim=True)).mean()

    def exact():
        weights = model(torch.randn(2, 4)) * 0
        return (weights / weights.sum(-1, keepdim=True)).mean()

    assert hunt(underflow, model).form == "0/0 (underflow)" and hunt(exact, model).form == "0/0"


def test_an_epsilon_that_fp16_rounds_to_zero_is_an_underflow():
    model = Linear().half()

    def loss():
        h = model(torch.randn(2, 4).half()) * 0
        return (h / (h + 1e-8)).float().mean()

    assert hunt(loss, model).suspect == "fp16_overflow_or_no_scaler"


@pytest.mark.parametrize(
    ("make", "suspect"),
    [
        (lambda h: torch.exp(h.abs() + 1000), "softmax_or_exp_overflow"),
        (lambda h: torch.log(torch.softmax(h * 1e5, -1)), "softmax_or_exp_overflow"),
        (lambda h: (h.abs() * 1e30 + 1e30).pow(2), "lr_too_high"),
        (lambda h: torch.sqrt(h * 0 - 1e-8), "cancellation"),
        (lambda h: torch.sqrt(h.abs() * 0 - 5), "log_or_div_of_zero"),
        (lambda h: ((h.half() + 300) * 1000).float(), "fp16_overflow_or_no_scaler"),
    ],
)
def test_the_suspect_follows_form_and_context(make, suspect):
    model = Linear()
    assert hunt(lambda: make(model(torch.randn(3, 4))).mean(), model).suspect == suspect


def test_the_magnitudes_before_the_origin_are_kept_in_order():
    model = Linear()

    def loss():
        h = model(torch.ones(2, 4)) * 0 + 3.0
        h = h * 1e20
        return (h * h).mean()

    report = hunt(loss, model)
    lines = [name for name, _ in report.magnitudes]
    assert report.form == "overflow" and [size for _, size in report.magnitudes][-1] == pytest.approx(3e20)
    assert lines == sorted(lines)


def test_a_magnitude_is_what_the_operation_made_whatever_lies_beside_it_in_memory():
    """`mse_loss` leaves the memory of its unreduced result behind its mean: no number of a report may come from there,
    nor from what was written over since."""
    model = Linear()

    def loss():
        h = model(torch.ones(2, 4)) * 0
        error = F.mse_loss(h, torch.full((2, 4), 3.0))
        scaled = error * 2
        gone = scaled.clone()
        scaled.mul_(5)
        return (scaled + gone) / (error - error)

    said = dict(hunt(loss, model).magnitudes)
    sizes = {name.split()[-1]: size for name, size in said.items()}
    assert {name: sizes.get(name) for name in ("mse_loss", "clone", "add")} == {"mse_loss": 9, "clone": 18, "add": 108}
    assert sizes["mul"] == 90 and sizes["sub"] == 0


def test_only_what_fed_the_operands_stands_before_the_origin():
    model = Linear()

    def loss():
        aside = model(torch.ones(2, 4)).exp()
        linear = model(torch.ones(2, 4))
        h = linear * 0
        return (h.sum() / h.sum()) + aside.sum()

    assert {name.split()[-1] for name, _ in hunt(loss, model).magnitudes} == {"addmm", "mul", "sum"}


# what is left alone


def clean(step_fn, model):
    report = hunt(step_fn, model)
    assert report.verdict == "finite", str(report)


def test_causal_masks_raise_no_alarm():
    model, mask = Linear(), torch.full((3, 3), -INF).triu(1)
    clean(lambda: (torch.softmax(model(torch.randn(3, 4)) @ torch.randn(4, 3) + mask, -1)).pow(2).mean(), model)


def test_buffers_that_are_overwritten_raise_no_alarm():
    model = Linear()

    def loss():
        buffer = torch.full((3, 4), math.nan)
        buffer.copy_(model(torch.randn(3, 4)))
        return buffer.mean()

    clean(loss, model)


def test_the_good_part_of_a_buffer_raises_no_alarm():
    model = Linear()

    def loss():
        buffer = torch.full((5, 4), math.nan)
        buffer[:3] = model(torch.randn(3, 4))
        return buffer[:3].mean()

    clean(loss, model)


def test_infinite_start_values_raise_no_alarm():
    model = Linear()

    def loss():
        best = torch.full((3,), INF)
        for column in model(torch.randn(3, 4)).unbind(1):
            best = torch.minimum(best, column)
        return best.mean()

    clean(loss, model)


def test_missing_targets_that_are_selected_away_raise_no_alarm():
    model, y = Linear(), torch.randn(3, 4)
    y[1, 1] = math.nan
    clean(lambda: (model(torch.ones(3, 4))[~y.isnan()] - y[~y.isnan()]).pow(2).mean(), model)


def test_an_infinity_that_is_replaced_before_use_raises_no_alarm():
    model, degree = Linear(), torch.tensor([0.0, 2.0, 4.0])

    def loss():
        inverse = degree.pow(-0.5)
        inverse[inverse.isinf()] = 0
        return (inverse[:, None] * model(torch.randn(3, 4))).mean()

    clean(loss, model)


def test_a_metric_that_is_nan_raises_no_alarm():
    model, seen = Linear(), []

    def loss():
        out = model(torch.randn(3, 4))
        seen.append(out[3:].detach().mean())
        return out.mean()

    clean(loss, model)
    assert seen[0].isnan()


def test_minus_infinity_in_a_batch_is_a_mask_for_a_softmax_and_bad_data_for_a_layer():
    model, scores = Linear(), torch.zeros(2, 4)
    scores[1] = -INF
    masked = hunt(lambda: torch.softmax(model(torch.ones(2, 4)) + scores, -1).mean(), model, batch=scores)
    assert (masked.op, masked.form) == ("softmax", "inf-inf")
    logs = torch.tensor([[0.0, -INF, 1.0, 2.0]])
    data = hunt(lambda: model(logs + 0.5).mean(), model, batch=logs)
    assert (data.where, data.form, data.op) == ("input", "inf_in", "inf in batch")


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def encode(self, x):
        h = self.fc(x) * 0
        return h / h

    def loss(self, x):
        h = self.fc(x) * 0
        return (h / h).mean()

    def forward(self, x, target=None):
        h = self.fc(x)
        if target is None:
            return h
        log_h = torch.log(h * 0)
        return {"loss": (log_h - target).pow(2).mean(), "logits": h}


def test_a_method_called_by_name_belongs_to_its_module_and_a_loss_method_to_the_loss():
    model = nn.ModuleDict({"coder": Coder()})
    encoded = hunt(lambda: model["coder"].encode(torch.ones(2, 4)).mean(), model)
    assert (encoded.where, encoded.module) == ("forward", "coder")
    assert hunt(lambda: model["coder"].loss(torch.ones(2, 4)), model).where == "loss"


def test_a_model_that_returns_its_loss_among_other_things_made_it_in_the_loss():
    model = Coder()
    report = hunt(lambda: model(torch.ones(2, 4), torch.ones(2, 4))["loss"], model)
    assert (report.where, report.form, report.module) == ("loss", "log(0)", "")


def test_a_module_called_in_a_function_named_like_a_loss_is_forward_all_the_same():
    model = nn.Sequential(nn.Linear(4, 4), Direction())

    def loss_fn():
        return model(torch.zeros(2, 4)).mean()

    with torch.no_grad():
        model[0].bias.zero_()
    assert hunt(loss_fn, model).where == "forward"
    plain = nn.Linear(4, 4)
    assert hunt(lambda: plain(torch.zeros(2, 4) / 0).mean(), plain).where == "forward"


def test_a_division_by_zero_among_masked_elements_is_the_origin_and_not_the_mask(marked):
    model, hidden = Linear(), torch.tensor([True, False, False, False])
    divisor = torch.tensor([1.0, 1.0, 0.0, 1.0])

    def loss():
        scores = model(torch.ones(2, 4)).abs().masked_fill(hidden, -INF)
        shares = scores / divisor  # <- here
        return shares.masked_fill(hidden, 0).sum()

    report = hunt(loss, model)
    assert (report.form, report.line, report.element) == ("x/0", marked(loss), [0, 2])


def test_a_buffer_that_was_bad_before_raises_no_alarm():
    class Cached(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.register_buffer("cache", torch.full((3,), math.nan))

        def forward(self, x):
            self.cache[0] = 1.0
            return self.fc(x)

    model = Cached()
    clean(lambda: model(torch.ones(2, 4)).mean(), model)


def test_an_infinity_that_only_backward_meets_is_told_as_input_or_target_by_who_read_it():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    x, weight = torch.ones(3, 4), torch.ones(3, 1)
    x[1, 2] = INF
    fed = hunt(lambda: model(x).mean(), model, batch=(x, weight))
    assert (fed.sink, fed.where, fed.op) == ("gradient", "input", "inf in batch[0]")
    x[1, 2], weight[1] = 1.0, INF
    compared = hunt(lambda: torch.tanh(model(x) * weight).mean(), model, batch=(x, weight))
    assert (compared.sink, compared.where, compared.op) == ("gradient", "target", "inf in batch[1]")


def test_a_target_inside_a_model_that_returns_its_loss_is_a_target():
    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.scale = nn.Linear(4, 4)

        def forward(self, x, y):
            error = self.fc(x) - y
            return self.scale(error).pow(2).mean()

    model, y = WithLoss(), torch.full((2, 4), math.nan)
    assert hunt(lambda: model(torch.ones(2, 4), y), model, batch=(torch.ones(2, 4), y)).op == "nan in batch[1]"
