import math

import pytest
import torch

from nanlab.lessons.softmax import SoftmaxLab
from nanlab.lessons.softmax.lab import LOGITS


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
