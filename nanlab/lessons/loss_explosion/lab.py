"""The explosion lab of lesson 02: learning rate, input scale and number format, and three fixes of which one fails."""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch

from nanlab.course.history import Fix, History
from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Choice, Number
from nanlab.lessons.loss_explosion import failure
from nanlab.plots import Chart, format_limit, number

_STEPS = 12  # enough for the slow explosion at step 6, and for a cured run to be seen falling
_FORMATS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True)
class Outcome:
    """A run, its number format, and the fix that the settings amount to."""

    history: History
    dtype: str
    fix: Fix | None


class ExplosionLab(Lab):
    """One run of ``failure.run`` for each setting of the controls."""

    controls = (
        Number(
            "lr",
            "learning rate",
            0.1,
            1e-6,
            10.0,
            (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
            hint="the failing run: 0.1",
        ),
        Number(
            "scale",
            "input scale",
            10.0,
            0.01,
            1000.0,
            (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
            hint="the failing run: 10",
        ),
        Choice("dtype", "number format", _FORMATS, "float32"),
        Choice("divide_inputs_by", "then divide inputs by", (1.0, 10.0, 100.0), 1.0),
    )
    buttons = (Button("No fix"), *(Button(fix.title, fix.knobs) for fix in failure.FIXES))
    buttons_label = "One fix at a time:"

    def compute(self, lr: float, scale: float, dtype: str, divide_inputs_by: float) -> Outcome:
        history = failure.run(lr, scale, getattr(torch, dtype), steps=_STEPS, divide_inputs_by=divide_inputs_by)
        values = {"lr": lr, "scale": scale, "dtype": dtype, "divide_inputs_by": divide_inputs_by}
        return Outcome(history, dtype, self.fix_among(failure.FIXES, values))

    def chart(self, result: Outcome) -> Chart:
        return result.history.chart("Loss, step by step", ("loss", "gradient_norm"), result.dtype)

    def sentence(self, result: Outcome) -> str:
        told = _bad(result) if not result.history.finite else _finite(result.history)
        return told if result.fix is None else f"{told} {result.fix.verdict}"

    def summary(self, result: Outcome) -> str:
        history = result.history
        end = number(history.loss[-1], 2 if result.dtype == "float32" else 0)
        bad = "none" if history.finite else history.first_bad_step
        return f"start {number(history.loss[0], 3)}, end {end} · first non-finite step {bad}"

    def settings(self) -> str:
        shown = super().settings()
        return shown.removesuffix(", divide_inputs_by=1")


def _bad(result: Outcome) -> str:
    history, step = result.history, result.history.first_bad_step
    limit = format_limit(result.dtype).label
    if step == 0:
        return f"The {history.first_bad_where} is not finite at the very first step: it does not fit below {limit}."
    finite = [value for value in history.loss if math.isfinite(value)]
    grew = f"The loss starts at {number(finite[0], 3)}"
    if len(finite) > 1:
        grew += f" and stands at {number(finite[-1], 3)} by step {len(finite) - 1}"
    return f"{grew}. At step {step} the first value is not finite: the {history.first_bad_where}, past {limit}."


def _finite(history: History) -> str:
    first, last = history.loss[0], history.loss[-1]
    span = f"from {number(first, 3)} to {number(last, 3)} in {len(history.loss)} steps"
    if all(later < earlier for earlier, later in pairwise(history.loss)):
        return f"Every value stays finite and the loss falls at every step, {span}."
    if last < first:
        return f"Every value stays finite and the loss ends lower, {span}, but it does not fall at every step."
    return f"Every value is still finite, but the loss has grown {span}: that is not a cure."
