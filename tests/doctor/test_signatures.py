"""Each signature alone: what it sees, what it stays silent about, and that the lines it names hold it."""

import pytest

from nanlab.doctor import diagnose
from nanlab.doctor.weigh import PRIOR, scores, verdict
from nanlab.suspects import SUSPECTS


def says(text: str) -> dict[str, tuple[int, ...]]:
    return {piece.says: piece.lines for piece in diagnose(text).evidence}


def run(losses, extra: str = "") -> str:
    return extra + "".join(f"step {i} loss {loss}\n" for i, loss in enumerate(losses))


def test_growth_by_orders_is_told_from_a_calm_death():
    assert any("grew" in text for text in says(run([2.0, 40.0, 9e4, 7e8, "inf", "nan"])))
    assert "a calm run, dead in one record" in says(run([2.0, 2.1, 1.9, 2.0, 2.1, "nan"]))


def test_a_huge_first_loss_points_to_the_scale_of_the_data():
    answer = diagnose(run([5e7, 4e9, "nan"]))
    assert "unscaled_inputs_or_targets" in [s.name for s in answer.suspects[:2]]
    assert not any("first loss" in text for text in says(run([2.3, 2.2, "nan"])))


def test_the_gradient_norm_s_climb_points_to_explosion():
    rows = "".join(
        f"step {i} loss {loss} grad_norm {norm}\n"
        for i, (loss, norm) in enumerate([(2, 1), (2, 1.1), (2.1, 40), (2.9, 9e5), ("nan", "nan")])
    )
    assert diagnose(rows).suspects[0].name == "exploding_gradients"


def test_a_loss_that_comes_back_clears_the_learning_rate():
    text = says(run([1.0, 0.9, "nan", 0.8, 0.9, 0.7]))
    assert "the loss is bad on some batches and fine again after them" in text


def test_one_loss_term_alone_is_named():
    log = "step 1 loss 1.0 cls_loss 0.5 mask_loss 0.5\nstep 2 loss nan cls_loss 0.5 mask_loss nan\n"
    assert says(log)["only mask_loss is bad, cls_loss is finite"] == (2,)


def test_a_finite_loss_with_a_bad_gradient_is_seen_and_the_other_way_round():
    first = "step 1 loss 1.0 grad_norm 1.0\nstep 2 loss 1.0 grad_norm nan\nstep 3 loss nan grad_norm nan\n"
    assert says(first)["the loss is finite and the gradient is not"] == (2,)
    second = "step 1 loss 1.0 grad_norm 1.0\nstep 2 loss nan grad_norm 0.7\nstep 3 loss 1.0 grad_norm 1.0\n"
    assert says(second)["the loss is not finite and the gradient is"] == (2,)


def test_a_validation_loss_that_is_nan_points_to_fp16_only_where_fp16_is_used():
    rows = "epoch 1 loss 0.9 val_loss nan\nepoch 2 loss 0.8 val_loss nan\n"
    answer = diagnose(rows)
    assert answer.verdict == "fault" and answer.suspects[0].name != "fp16_overflow_or_no_scaler"
    answer = diagnose("precision: fp16\n" + rows)
    assert (answer.verdict, answer.suspects[0].name) == ("fault", "fp16_overflow_or_no_scaler")


def test_nan_right_after_a_resume_points_to_the_state():
    loaded = "Resuming training from checkpoint step_900, optimizer state restored\n"
    rows = "step 901 loss 0.9\nstep 902 loss nan\n"
    assert diagnose(loaded + rows).suspects[0].name == "poisoned_state"
    assert diagnose(rows).suspects[0].name != "poisoned_state"


def test_a_scale_that_settles_is_harmless_and_one_at_its_floor_is_a_fault():
    settles = "".join(f"step {i} loss 2.0 loss_scale {s}\n" for i, s in enumerate([65536, 32768, 16384, 16384, 16384]))
    assert diagnose(settles).verdict == "harmless"
    falls = "".join(f"step {i} loss 2.0 loss_scale {65536 / 2**i}\n" for i in range(30))
    answer = diagnose(falls)
    assert (answer.verdict, answer.suspects[0].name) == ("fault", "fp16_overflow_or_no_scaler")


def test_two_ways_in_one_log_show_what_makes_the_difference():
    assert (
        diagnose("float32: step 5 loss 1.0\nfloat16: step 5 loss nan\n").suspects[0].name
        == "fp16_overflow_or_no_scaler"
    )
    assert diagnose("cpu: step 5 loss 1.0\nmps: step 5 loss nan\n").suspects[0].name == "hardware_or_kernel_bug"
    assert diagnose("lr=0.001 last loss 0.4\nlr=1.0 last loss nan\n").suspects[0].name == "lr_too_high"


TRACE = """Error detected in {node}. Traceback of forward call that caused the error:
  File "/x/model.py", line 7, in forward
    {line}
RuntimeError: Function '{node}' returned nan values in its 0th output.
"""


@pytest.mark.parametrize(
    ("node", "line", "name"),
    [
        ("SqrtBackward0", "d = torch.sqrt(sq)", "log_or_div_of_zero"),
        ("DivBackward0", "w = w / w.sum()", "log_or_div_of_zero"),
        ("ExpBackward0", "p = torch.exp(z)", "softmax_or_exp_overflow"),
        ("SoftmaxBackward0", 'a = s.masked_fill(m, float("-inf")).softmax(-1)', "fully_masked_attention"),
        ("CudnnRnnBackward0", "out, h = self.lstm(x)", "exploding_gradients"),
        ("CtcLossBackward0", "loss = F.ctc_loss(p, y, n, m)", "bad_data"),
    ],
)
def test_an_operation_in_a_traceback_counts_with_the_line_under_it(node, line, name):
    answer = diagnose(TRACE.format(node=node, line=line))
    assert answer.suspects[0].name == name
    assert {1, 3} & set(answer.suspects[0].lines)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("0/0", "log_or_div_of_zero"),
        ("fully masked row", "fully_masked_attention"),
        ("nothing to average", "empty_reduction"),
        ("already in the input", "bad_data"),
        ("already in the optimizer state", "poisoned_state"),
        ("uninitialised memory", "bad_init_or_uninitialised"),
    ],
)
def test_the_forms_of_nanlab_s_own_reports_are_understood(form, name):
    report = f"net.head (line 41): {form} in 4 of 12 elements, first at [2, 0]"
    text = f"nanlab.detect.origin.report.NonFiniteError: step 12: {report}\n"
    answer = diagnose(text)
    assert (answer.verdict, answer.first_bad_step, answer.suspects[0].name) == ("fault", 12, name)


@pytest.mark.parametrize(
    "text", ["no NaN found in step 3", "checking for NaN: none", "stop_on_nan: true", "0 NaN values", "nan_policy=omit"]
)
def test_a_line_that_denies_nan_reports_none(text):
    assert diagnose(f"step 1 loss 0.5\n{text}\nstep 2 loss 0.4\n").verdict == "no-nan"


@pytest.mark.parametrize(
    "text",
    [
        "torch.OutOfMemoryError: CUDA out of memory.",
        "KeyError: 'nan'",
        "Killed",
        "RuntimeError: NCCL timeout",
        "Assertion `t >= 0 && t < n_classes` failed.",
    ],
)
def test_other_deaths_are_no_nan(text):
    assert diagnose(f"step 1 loss 0.5\nstep 2 loss 0.4\n{text}\n").verdict == "no-nan"


@pytest.mark.parametrize(
    "text", ["best_loss: inf", "mask value -inf", "val_loss improved from inf to 0.31", "early_stopping min_delta -inf"]
)
def test_an_infinity_that_is_a_setting_is_no_fault(text):
    assert diagnose(f"{text}\nstep 1 loss 0.5\nstep 2 loss 0.4\n").verdict == "no-nan"


def test_every_weight_goes_to_a_suspect_that_exists():
    from nanlab.doctor.vocabulary import operations, table

    known = set(SUSPECTS) | {"unknown", "not_nan"}
    rows = [row.weights for section in ("phrase", "code", "form") for row in table(section)] + list(
        operations().values()
    )
    assert {name for weights in rows for name in weights} <= known
    assert set(PRIOR) == known


def test_scores_are_probabilities():
    chance = scores([])
    assert sum(chance.values()) == pytest.approx(1.0)
    assert verdict(chance) in {"fault", "unknown", "harmless", "no-nan"}
