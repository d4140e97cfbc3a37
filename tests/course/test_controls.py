"""Controls turn down what they don't allow, in a sentence for the learner."""

import pytest

from nanlab.course.lab import Choice, Number

LR = Number("lr", "learning rate", 0.1, 1e-6, 10.0, ladder=(0.01, 0.1, 1.0))


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), (" 1e-3 ", 0.001), ("1,000e-3", 1.0), ("+1", 1.0)])
def test_a_number_in_range_is_taken(text, value):
    assert LR.parse(text) == value


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("abc", "“abc” is not a number"),
        ("", "type a number"),
        ("5,5", "write a point before the decimals"),
        ("−3", "type a number from 1e-06 to 10"),
        ("0", "type a number from 1e-06 to 10"),
        ("-1", "type a number from 1e-06 to 10"),
        ("11", "type a number from 1e-06 to 10"),
        ("inf", "type a finite number"),
        ("nan", "type a finite number"),
    ],
)
def test_anything_else_is_turned_down_in_words(text, answer):
    with pytest.raises(ValueError, match=answer):
        LR.parse(text)


def test_a_whole_number_is_an_int_and_nothing_else_passes():
    steps = Number("steps", "steps", 12, 1, 100, whole=True)
    assert steps.parse("12") == 12 and isinstance(steps.parse("12"), int)
    with pytest.raises(ValueError, match="whole"):
        steps.parse("1.5")


def test_steps_go_along_the_ladder_and_stop_at_its_ends():
    assert LR.step(0.1, up=True) == 1.0
    assert LR.step(0.05, up=True) == 0.1
    assert LR.step(0.05, up=False) == 0.01
    assert LR.step(1.0, up=True) == 1.0


def test_without_a_ladder_a_step_is_one_and_stays_in_range():
    count = Number("n", "n", 3, 1, 4, whole=True)
    assert count.step(3, up=True) == 4
    assert count.step(4, up=True) == 4


def test_a_choice_takes_its_options_only():
    dtype = Choice("dtype", "number format", {"fp32": "float32"}, "float32")
    assert dtype.check("float32") == "float32"
    with pytest.raises(ValueError, match="choose one of fp32"):
        dtype.check("fp32")
