"""Faults that print no NaN, and what only looks like one."""

from nanlab.doctor import diagnose

HEAD = "{{'loss': {}, 'grad_norm': {}, 'learning_rate': 1e-05, 'epoch': {}}}\n"


def log(*rows) -> str:
    return "".join(HEAD.format(loss, norm, i / 10) for i, (loss, norm) in enumerate(rows))


def test_a_trainer_s_loss_of_zero_after_a_large_one_is_a_fault():
    answer = diagnose(log((2.1, 3.0), (2.0, 2.9), (0.0, "nan"), (0.0, "nan")))
    assert (answer.verdict, answer.first_bad_line, answer.first_bad_kind) == ("fault", 3, "nan")


def test_a_loss_that_falls_to_zero_is_learning():
    assert diagnose(log((0.01, 0.2), (0.0004, 0.1), (0.0, 0.01), (0.0, 0.01))).verdict == "no-nan"


def test_a_policy_s_loss_starts_at_zero():
    assert diagnose(log((0.0, 0.9), (0.0, 0.8), (0.0001, 0.9))).verdict == "no-nan"


def test_a_loss_of_zero_with_a_gradient_of_zero_has_no_targets():
    answer = diagnose(log((0.0, 0.0), (0.0, 0.0), (0.0, 0.0)))
    assert answer.verdict == "fault"
    assert "empty_reduction" in [suspect.name for suspect in answer.suspects[:2]]


def test_megatron_drops_the_field_of_a_loss_that_is_not_finite():
    line = " iteration {:4}/ 900 | consumed samples: {} | elapsed time per iteration (ms): 9.1 | {}loss scale: 1.0 |\n"
    text = "".join(line.format(i, 8 * i, "lm loss: 2.1E+00 | " if i < 5 else "") for i in range(1, 8))
    answer = diagnose(text)
    assert (answer.verdict in {"fault", "unknown"}, answer.first_bad_step) == (True, 5)


def test_deepspeed_repeats_the_norm_while_no_step_is_taken():
    answer = diagnose(log((1.9, 1.5120312), (0.0, 2.3410231), (0.0, 2.3410231), (0.0, 2.3410231), (0.0, 2.3410231)))
    assert answer.verdict == "fault"
    assert answer.suspects[0].name == "fp16_overflow_or_no_scaler"


def test_a_loss_replaced_by_zero_is_a_fault():
    text = "step 119 loss 0.51\nWARNING: loss at step 120 was NaN, replaced by zero\nstep 121 loss 0.50\n"
    assert diagnose(text).first_bad_step == 120


def test_gradients_that_are_all_zero_in_fp16_underflowed():
    text = "fp16: true\n" + "".join(f"step {i} loss 2.3026 grad_norm 0.0\n" for i in range(5))
    assert diagnose(text).suspects[0].name == "fp16_overflow_or_no_scaler"
