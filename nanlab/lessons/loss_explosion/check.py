"""Checks of the exercise on lesson 02: name the first bad value, cure the run twice, write a test that sees inf."""

import math
from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor

from nanlab.course.history import History, digits
from nanlab.course.verdict import Exercise, call, fail
from nanlab.lessons.loss_explosion import failure

EXERCISE = Exercise("02_loss_explosion", ("first bad value", "learning rate", "data", "is_bad"))
STEPS = 60
FALLS_TO = 0.1  # a cured run ends below this share of its first loss
SAME_TASK = 0.98  # correlation of the targets with the row sums; standardising each column leaves it above 0.99
LARGE = 5.0  # a standard deviation above this is unscaled; the lesson's data have 10 and 32
QUANTITIES = ("activation", "loss", "gradient", "weight")
SMALL = 0.05  # and one below this leaves only the biases to be learnt


def first_bad(step: int, quantity: str) -> None:
    """Question 1: the 0-based step and the quantity (activation, loss, gradient or weight) that went bad first."""
    tried = "your step and quantity against the run itself"
    if step is None or quantity is None or step is ... or quantity is ...:
        fail(tried, "the stub", "Fill in both: a step number and a word.")
    answer = f"step {step!r}, {quantity}"
    if not isinstance(step, int) or quantity not in QUANTITIES:
        fail(tried, answer, f"Give the step as a whole number, and one of the words {', '.join(QUANTITIES)}.")
    if step == 4:
        fail(tried, answer, "That is the first nan. The first value that is not finite came a step earlier, as inf.")
    if step != failure.FIRST_BAD_STEP:
        fail(tried, answer, "Count from 0, and look for the first loss that prints inf.")
    if quantity in ("gradient", "weight"):
        fail(tried, answer, "It is infinite at that step too, but it is computed after what made it so.")
    if quantity != failure.FIRST_BAD_WHERE:
        fail(tried, answer, "The largest activation is about 3e26 there, and fp32 holds that. What squares it?")
    EXERCISE.passed("first bad value")


def rate(lr: float) -> None:
    """Question 2: a learning rate that cures the run while inputs and targets stay as they are."""
    tried = f"{STEPS} steps at your rate, data unchanged (scale 10)"
    if not isinstance(lr, Real) or isinstance(lr, bool):
        fail(tried, repr(lr), "Give one number.")
    if not 0 < lr < math.inf:
        fail(tried, f"a rate of {lr:g}", "A rate of 0 or below teaches nothing: the loss can't fall.")
    history = failure.run(lr=float(lr), steps=STEPS)
    if not history.finite:
        fail(tried, _bad(history), "It still explodes.", suspect="lr_too_high")
    _learns(history, tried, "Too small: a range test finds the largest rate that works.")
    EXERCISE.passed("learning rate")


def data(make_data: Callable[[], tuple[Tensor, Tensor]]) -> None:
    """Question 3: inputs (256, 10) and targets (256, 1) that cure the run while the learning rate stays 0.1."""
    tried = f"{STEPS} steps at a rate of 0.1 on your data"
    inputs, targets = _pair(call(make_data, tried=tried), tried)
    both = torch.stack([inputs.sum(dim=1), targets[:, 0]])
    if not torch.corrcoef(both)[0, 1].item() > SAME_TASK:
        back = "targets that do not follow the sum of your inputs"
        fail(tried, back, "The task must stay the same: y is the sum of each row of X, up to scale and shift.")
    if min(inputs.std(), targets.std()) < SMALL:
        fail(tried, "inputs or targets that are all but zero", "Nothing is left to learn. Aim at a deviation of 1.")
    torch.manual_seed(0)
    torch.randn(256, 10)  # so that the network starts as in the lesson
    history = failure.train(failure.model(), inputs, targets, lr=0.1, steps=STEPS)
    if not history.finite:
        fail(tried, _bad(history), _unscaled(inputs, targets), suspect="unscaled_inputs_or_targets")
    _learns(history, tried, "Aim at a standard deviation of 1 for both.")
    EXERCISE.passed("data")


def is_bad(is_bad: Callable[[float], bool]) -> None:
    """Question 4: a function that is True for a loss that must stop the run, and False for any other number."""
    cases = {0.0: False, 900.1: False, -3.5: False, 3e38: False, math.inf: True, -math.inf: True, math.nan: True}
    for loss, bad in cases.items():
        tried = f"is_bad({loss})"
        answer = call(is_bad, loss, tried=tried)
        if bool(answer) is bad:
            continue
        if math.isinf(loss):
            fail(tried, repr(answer), "loss != loss is True for nan alone, and inf comes first. Ask for finite.")
        if math.isnan(loss):
            fail(tried, repr(answer), "Every comparison with nan is False: loss > limit misses it. Ask for finite.")
        fail(tried, repr(answer), "That is a loss like any other. A large loss is a warning and not yet a failure.")
    EXERCISE.passed("is_bad")


def _bad(history: History) -> str:
    return f"{history.first_bad_where} not finite at step {history.first_bad_step}"


def _learns(history: History, tried: str, hint: str) -> None:
    if history.loss[-1] > history.loss[0] * FALLS_TO:
        back = f"finite, and the loss went from {digits(history.loss[0])} to {digits(history.loss[-1], 2)}"
        fail(tried, back, f"Finite is not enough, it has to learn. {hint}")


def _unscaled(inputs: Tensor, targets: Tensor) -> str:
    """What to say about data that still explode."""
    if targets.std() > LARGE and inputs.std() < LARGE:
        return "You scaled X after y was made. The targets are as large as before; scale them too."
    if inputs.std() > LARGE and targets.std() < LARGE:
        return "You scaled y alone. The inputs are as large as before; scale them too."
    return "Inputs and targets are both still large."


def _pair(answer, tried: str) -> tuple[Tensor, Tensor]:
    try:
        inputs, targets = answer
        shapes = tuple(inputs.shape), tuple(targets.shape)
    except (TypeError, ValueError, AttributeError):
        fail(tried, type(answer).__name__, "Return two tensors: inputs, targets.")
    if shapes != ((256, 10), (256, 1)):
        fail(tried, f"shapes {shapes[0]} and {shapes[1]}", "The lesson's shapes are (256, 10) and (256, 1).")
    if not inputs.dtype == targets.dtype == torch.float32:
        fail(tried, f"{inputs.dtype} and {targets.dtype}", "Keep both in float32: the network's weights are.")
    return inputs, targets
