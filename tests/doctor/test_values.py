"""Numbers with their names, in any spelling and between any marks."""

import math

import pytest

from nanlab.doctor.readers.roles import is_validation, role_of
from nanlab.doctor.readers.values import number_of, pairs, without_clock

SPELLINGS = [
    "nan",
    "-nan",
    "NaN",
    "NAN",
    "+nan",
    ".nan",
    "nan.0",
    "nanxxx",
    "1.#IND",
    "-1.#IND",
    "1.#QNAN",
    "-nan(ind)",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_nan_is_a_nan(spelling):
    found = pairs(f"step 3 loss {spelling} lr 0.1")
    assert [p.name for p in found] == ["step", "loss", "lr"]
    assert math.isnan(found[1].number)


@pytest.mark.parametrize("spelling", ["inf", "-inf", "Infinity", "INF", "+inf.0", "1.#INF"])
def test_every_spelling_of_inf_is_an_inf(spelling):
    (pair,) = pairs(f"loss={spelling}")
    assert math.isinf(pair.number)
    assert (pair.number < 0) == spelling.startswith("-")


@pytest.mark.parametrize(
    "text",
    [
        "loss: 1.5",
        "loss=1.5",
        "'loss': 1.5,",
        '"loss": 1.5',
        "| loss | 1.5 |",
        "loss 1.5",
        "loss -> 1.5",
        "the loss is 1.5",
        "[loss: 1.5]",
        "• Loss: 1.5",
        "INFO:trainer:loss = 1.5",
        "loss: tensor(1.5)",
    ],
)
def test_the_name_stands_in_front_whatever_is_between(text):
    (pair,) = pairs(without_clock(text))
    assert (pair.name.split()[-1], pair.number) == ("loss" if "tensor" not in text else pair.name.split()[-1], 1.5)


def test_a_running_mean_in_parentheses_belongs_to_the_value_before_it():
    current, mean = pairs("loss 6.59 (nan)")
    assert (current.number, current.inside) == (6.59, False)
    assert math.isnan(mean.number) and mean.inside and mean.name == "loss"


@pytest.mark.parametrize(
    "text",
    [
        "number of nan iterations: x",
        "nan=0.0"[:4],
        "check_nan: x",
        "nan_to_num(y)",
        "finance",
        "isnan(z)",
        "nanoGPT",
        "info",
        "infiniband",
        "no nan here",
        "terminate_on_nan",
    ],
)
def test_words_that_only_contain_the_letters_are_no_values(text):
    assert not [p for p in pairs(text) if not math.isfinite(p.number)]


def test_a_thousand_separator_and_a_total_are_understood():
    (pair,) = pairs("Step 12,001/50,000")
    assert (pair.number, pair.total) == (12001, 50000)


def test_dates_times_and_source_positions_are_no_values():
    text = "2026-01-31 23:59:59,123 [trainer.py:1142] 00:12 [12:20<07:53] File train.py line"
    assert not [p for p in pairs(without_clock(text)) if p.number > 1]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("lm loss", "loss"),
        ("loss_iou", "loss"),
        ("grad_norm", "gradient"),
        ("gnorm", "gradient"),
        ("loss scale", "scale"),
        ("grad_scale", "scale"),
        ("learning rate", "lr"),
        ("val_acc", "metric"),
        ("miou", "metric"),
        ("ep_rew_mean", "metric"),
        ("xent", "loss"),
        ("batch size", "other"),
        ("", "unnamed"),
        ("logits max", "state"),
    ],
)
def test_the_role_is_read_from_the_name(name, role):
    assert role_of(name) == role


def test_validation_is_told_from_training():
    assert all(map(is_validation, ["val_loss", "eval_loss", "valid loss", "vali loss", "test loss", "dev"]))
    assert not any(map(is_validation, ["train loss", "loss", "interval", "evaluate_every_train", "latest"]))


def test_what_is_no_number_gives_none():
    assert [number_of(text) for text in ("", "x", "nano", "-", "1e", "0x1")] == [None] * 6
