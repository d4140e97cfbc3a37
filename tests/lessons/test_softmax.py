"""Lesson 05: the softmax that overflows, its fixes, one softmax step by step, the lab and the pictures."""

import math

import pytest
import torch

from nanlab import suspects
from nanlab.lessons import softmax
from nanlab.lessons.softmax import SoftmaxLab, failure, pictures
from nanlab.lessons.softmax.lab import LOGITS

cures = [fix for fix in softmax.FIXES if fix.cures]
by_name = {fix.name: fix for fix in softmax.FIXES}
logits = torch.tensor([20.0, -50.0, 90.0, 10.0])


def test_the_hand_written_loss_fails_where_the_module_says():
    history = softmax.run()
    assert (history.first_bad_step, history.first_bad_where) == (failure.FIRST_BAD_STEP, failure.FIRST_BAD_WHERE)
    assert history.largest_activation[-2] < 88.72


def test_the_first_bad_value_is_an_overflow_of_exp():
    passes = softmax.walk(logits, "naive")
    assert [math.isfinite(p.power) for p in passes] == [True, True, False, True]
    assert passes[-1].total == math.inf


@pytest.mark.parametrize("fix", cures, ids=lambda fix: fix.name)
def test_each_cure_works_alone_and_agrees_with_float64(fix):
    history = softmax.run(**fix.knobs)
    assert history.finite
    exact = softmax.run(**{"form": "fused"} | fix.knobs, dtype=torch.float64).loss[-1]
    assert history.loss[-1] == pytest.approx(exact, rel=1e-3)


def test_shifting_alone_saves_the_softmax_and_not_its_logarithm():
    history = softmax.run(**by_name["shifted"].knobs)
    assert (history.first_bad_step, history.first_bad_where) == (7, "loss")
    assert history.loss[-1] == math.inf


def test_an_epsilon_in_the_logarithm_is_finite_and_wrong():
    history = softmax.run(**by_name["epsilon_in_log"].knobs)
    assert history.finite
    assert history.loss[-1] < 0.5 * softmax.run(form="fused").loss[-1]


def test_a_lower_learning_rate_fails_at_the_same_step():
    assert softmax.run(**by_name["lower_lr"].knobs).first_bad_step == failure.FIRST_BAD_STEP


@pytest.mark.parametrize(("dtype", "step"), [(torch.float16, 1), (torch.bfloat16, 6), (torch.float64, None)], ids=str)
def test_the_step_at_which_it_fails_hangs_on_the_range_of_the_format(dtype, step):
    assert softmax.run(dtype=dtype).first_bad_step == step
    assert softmax.run(dtype=dtype, form="fused").finite


@pytest.mark.parametrize(
    ("dtype", "below", "above"),
    [
        (torch.float16, 11.08, 11.1),
        (torch.bfloat16, 88.5, 89.0),
        (torch.float32, 88.72, 88.73),
        (torch.float64, 709.78, 709.79),
    ],
    ids=str,
)
def test_exp_overflows_above_the_logarithm_of_the_largest_number(dtype, below, above):
    assert torch.tensor(below, dtype=dtype).exp().isfinite()
    assert torch.tensor(above, dtype=dtype).exp().isinf()


@pytest.mark.parametrize("form", ["shifted", "online"])
def test_walking_gives_the_normaliser_of_the_fused_softmax(form):
    last = softmax.walk(logits.double(), form)[-1]
    assert last.largest == 90.0
    assert last.largest + math.log(last.total) == pytest.approx(torch.logsumexp(logits.double(), 0).item())


def test_the_online_sum_is_rescaled_only_where_the_maximum_rises():
    assert [p.rescale == 1.0 for p in softmax.walk(logits, "online")] == [False, True, False, True]


@pytest.mark.parametrize("form", failure.FORMS)
def test_every_form_agrees_with_the_fused_one_on_small_logits(form):
    small, labels = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64), torch.tensor([1])
    p, loss = softmax.loss_of(small, labels, form)
    torch.testing.assert_close(p, small.softmax(dim=-1), equal_nan=False)
    assert loss.item() == pytest.approx(torch.nn.functional.cross_entropy(small, labels).item(), rel=1e-9)


def test_each_fix_changes_one_knob_and_each_suspect_is_in_the_table():
    assert all(len(fix.knobs) == 1 for fix in softmax.FIXES)
    assert [suspects.get(name).name for name in softmax.SUSPECTS] == list(softmax.SUSPECTS)


def test_the_lab_opens_on_the_overflow():
    lab = SoftmaxLab()
    assert lab.settings() == "scale=100, float32, naive"
    assert lab.summary(lab.result) == "sum inf from position 5 · 1 nan, 7 zeros among 8 probabilities"
    assert "more than 88.72" in lab.sentence(lab.result)


@pytest.mark.parametrize("form", ["shifted", "online"])
def test_both_safe_forms_agree_with_the_fused_softmax(form):
    lab = SoftmaxLab(form=form, scale=10.0)
    wanted = (torch.tensor(LOGITS, dtype=torch.float64) * 10).softmax(0).tolist()
    assert lab.result.probabilities == pytest.approx(wanted, rel=1e-5)


def test_the_online_table_shows_the_maximum_rising_and_the_sum_scaled_down():
    lab = SoftmaxLab(form="online", scale=10.0)
    rows = lab.table(lab.result)[1]
    assert [row[2] for row in rows] == ["2", "2", "6", "6", "10", "10", "10", "10"]
    assert [n for n, p in enumerate(lab.result.passes, 1) if p.rescale != 1] == [1, 3, 5]


def test_a_probability_that_vanished_is_told():
    lab = SoftmaxLab(form="shifted", scale=200.0)
    assert "a logarithm of them is -inf" in lab.sentence(lab.result)
    assert sum(p == 0 for p in lab.result.probabilities) > 0


def test_in_fp16_the_sum_can_overflow_though_each_exponential_fits():
    lab = SoftmaxLab(dtype="float16", scale=11.05)
    assert all(math.isfinite(p.power) for p in lab.result.passes)
    assert "their sum does not" in lab.sentence(lab.result)


def test_bf16_has_the_range_of_fp32():
    assert SoftmaxLab(dtype="bfloat16", scale=88.0).result.first_bad is None
    assert SoftmaxLab(dtype="bfloat16", scale=100.0).result.first_bad == 5


def test_naive_and_safe_forms_say_what_they_did():
    phrases = {"naive": "No logit is above", "shifted": "between 1 and 8", "online": "One pass is enough"}
    for form, said in phrases.items():
        lab = SoftmaxLab(form=form, scale=3.0)
        assert said in lab.sentence(lab.result)


def test_weights_grow_until_the_box_is_full():
    words = pictures.weights((0, 1, 88, 89)).words().splitlines()
    assert words[2].split() == ["weight", "1", "2.7", "1.7e+38", "inf"]


def test_points_that_are_too_large_leave_nan_shares():
    assert pictures.shares((103, 101, 102)).words().splitlines()[-1].split() == ["share", "nan", "nan", "nan"]


def test_counting_from_the_top_gives_the_shares_of_the_small_points():
    small, large = pictures.shares((3, 1, 2)), pictures.shares((103, 101, 102), from_the_top=True)
    assert small.words().splitlines()[-1] == large.words().splitlines()[-1]
    assert "below the best 0  -2  -1" in large.words()
