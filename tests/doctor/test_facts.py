"""Facts beside the bad line, and hints that tell causes with the same curve apart."""

import pytest

from nanlab.doctor import diagnose
from nanlab.doctor.vocabulary import phrases

CALM = "".join(f"step {i} loss 0.4{i}{{more}}\n" for i in range(3))


def first(text: str) -> str:
    return diagnose(text).suspects[0].name


def score(text: str, name: str) -> float:
    return next((s.score for s in diagnose(text).suspects if s.name == name), 0.0)


@pytest.mark.parametrize(
    ("good", "bad", "name"),
    [
        (" inputs_finite True", " inputs_finite False", "bad_data"),
        (" rows 16", " rows 0", "empty_reduction"),
        (" num_triplets 9", " num_triplets 0", "empty_reduction"),
        (" min_divisor 0.002", " min_divisor 0", "log_or_div_of_zero"),
        (" pad_fraction_max 0.81", " pad_fraction_max 1.0", "fully_masked_attention"),
    ],
)
def test_a_fact_printed_beside_the_bad_loss_decides(good, bad, name):
    assert first(CALM.format(more=good) + f"step 3 loss nan{bad}\n") == name
    assert score(CALM.format(more=good) + f"step 3 loss nan{good}\n", name) < 0.3


def test_a_bad_input_is_the_first_sign_even_while_the_loss_is_finite():
    rows = "step 0 loss 0.4\nstep 1 loss 0.4 inputs_finite False\nstep 2 loss 0.4\nstep 3 loss nan\n"
    assert (diagnose(rows).first_bad_step, first(rows)) == (1, "bad_data")


def test_a_stated_range_points_to_the_scale_of_the_data():
    assert first("target range: 12000 .. 985000\nepoch 0 loss nan\n") == "unscaled_inputs_or_targets"
    assert first("target range: -1.2 .. 2.4\nepoch 0 loss nan\n") != "unscaled_inputs_or_targets"


def test_a_leap_out_of_a_calm_run_is_told_from_a_climb():
    leap = "".join(f"step {900 + i} loss {loss}\n" for i, loss in enumerate([1.31, 1.29, 1.27, 88421.0, "nan"]))
    climb = "".join(f"step {900 + i} loss {loss}\n" for i, loss in enumerate([1.3, 5.1, 44.0, 9e3, "nan"]))
    assert first(leap) == "exploding_gradients"
    assert first(climb) == "lr_too_high"


@pytest.mark.parametrize(
    "line",
    [
        "mixed precision is enabled",
        "mixed_precision: true",
        "opt_level='o1'",
        "fp16 = dict(loss_scale=512.)",
        '"fp16": {"enabled": true}',
        "fp16_run=true",
        "fp16 ............................ true",
        "solver.amp.enabled true",
        "type ampoptimwrapper",
        "using 16-bit precision",
        "autocast enabled",
    ],
)
def test_half_precision_is_heard_in_many_words(line):
    assert "half" in {phrase.signal for phrase in phrases(line)}


@pytest.mark.parametrize("line", ["fp16: false", "mixed_precision=no", "mixed_precision=bf16", "ampere", "amplitude 1"])
def test_words_that_only_look_like_half_precision_are_not_taken_for_it(line):
    assert "half" not in {phrase.signal for phrase in phrases(line)}


def test_a_log_that_never_speaks_of_fp16_does_not_put_it_first():
    assert first("".join(f"step {i} loss {v}\n" for i, v in enumerate([2.0, 2.1, 2.0, 2.1, "nan"]))) != (
        "fp16_overflow_or_no_scaler"
    )


@pytest.mark.parametrize("name", ["recall_rare", "AP_rare", "dice_lesion", "ep_rewmean"])
def test_a_metric_of_a_class_without_samples_is_harmless(name):
    answer = diagnose("".join(f"epoch {i} loss 0.{9 - i} {name} nan\n" for i in range(4)))
    assert (answer.verdict, answer.suspects[0].name) == ("harmless", "metric_only")


def test_a_box_term_on_the_line_below_counts_as_part_of_the_record():
    record = "[epoch 1][iter {i}] loss: {loss}, lr: 1.0e-04\n\t\trpn_cls: 0.70, rpn_box: {box}, rcnn_cls: 1.1\n"
    text = record.format(i=0, loss=2.2, box=0.04) + record.format(i=100, loss="nan", box="nan")
    assert "only rpn_box is bad, rpn_cls is finite" in {piece.says for piece in diagnose(text).evidence}


def test_a_buffer_that_is_bad_before_the_first_step_points_to_the_start_unless_it_was_loaded():
    report = "NaN in buffer blocks.1.bn.running_var: True\n"
    steps = "epoch 0 loss nan\nepoch 1 loss nan\n"
    assert first(report + steps) == "bad_init_or_uninitialised"
    assert first("Loading weights/net.pth\n" + report + steps) == "poisoned_state"


def test_a_small_batch_counts_for_images_and_not_for_language():
    rows = "step 0 loss 2.1\nstep 50 loss nan\n"
    says = "a batch of a few samples: ims_per_batch: 2"
    assert says in {piece.says for piece in diagnose("IMS_PER_BATCH: 2\n" + rows).evidence}
    assert says not in {piece.says for piece in diagnose("tokenizer ready\nIMS_PER_BATCH: 2\n" + rows).evidence}


def test_a_loss_scale_that_falls_for_ever_is_a_fault_and_one_that_settles_is_not():
    falls = "".join(f"step {i} loss 1.2 scale {2.0 ** (10 - 2 * i)}\n" for i in range(10))
    holds = "".join(f"step {i} loss 2.{9 - i} scale {max(16384, 65536 >> i)}\n" for i in range(8))
    assert first(falls) == "fp16_overflow_or_no_scaler"
    assert (diagnose(holds).verdict, first(holds)) == ("harmless", "amp_warmup_skip")


def test_statistics_that_nothing_was_measured_for_yet_are_no_fault():
    none = "Iteration 99\nlossAverage nan\nlossStd nan\ngradNormAverage nan\ngradNormStd nan\n"
    some = "Iteration 199\nlossAverage 0.012\nlossStd 0.011\ngradNormAverage 0.03\ngradNormStd 0.01\n"
    assert diagnose(none + some).verdict == "harmless"
    assert diagnose(none + none.replace("99", "199")).verdict != "harmless"


def test_two_devices_are_compared_where_no_column_is_called_a_loss():
    head = "device={d}\n  Epoch   gpu_mem       box       obj       cls    labels  img_size\n"
    row = "   0/99     2.61G  {v}  {v}  {v}   6       416: 100%|##########| 7/7\n"
    text = head.format(d=0) + row.format(v="nan") + head.format(d="cpu") + row.format(v="0.11")
    assert first(text) == "hardware_or_kernel_bug"


def test_a_step_behind_a_dotted_name_is_a_step():
    rows = "runtime.step=1850, loss.total=0.41\nruntime.step=1900, loss.total=nan\n"
    assert diagnose(rows).first_bad_step == 1900


def test_a_negative_logarithm_of_the_loss_scale_is_a_scale_at_its_floor():
    rows = "| loss | nan |\n| step | 900 |\nFound NaN, decreased lg_loss_scale to {}\n"
    assert first(rows.format("-16.3")) == "fp16_overflow_or_no_scaler"
    assert first(rows.format("16.3")) != "fp16_overflow_or_no_scaler"


def test_a_warm_up_at_a_tiny_rate_says_less_than_one_at_a_high_rate():
    rows = "".join(f"step {i} loss {v} lr {{{i}}}\n" for i, v in enumerate([2.0, 2.1, 2.0, "nan"]))
    tiny, high = rows.format(1e-7, 2e-7, 3e-7, 4e-7), rows.format(1e-3, 2e-3, 3e-3, 4e-3)
    assert score(tiny, "lr_too_high") < score(high, "lr_too_high")


def test_a_run_over_many_devices_raises_the_chance_that_no_cause_can_be_named():
    says = "a run spread over many devices"
    rows = "[rank0] step 1 loss 2.1\n[rank0] step 2 loss 2.0\n[rank0] step 3 loss nan\n"
    assert says in {piece.says for piece in diagnose(rows).evidence}
    assert says not in {piece.says for piece in diagnose(rows.replace("[rank0] ", "")).evidence}


def test_bf16_false_beside_fp16_true_is_a_half_precision_run():
    signals = {phrase.signal for phrase in phrases("--fp16 true --bf16 false")}
    assert "half" in signals
    assert "bf16" not in signals
