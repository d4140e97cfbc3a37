"""The explosion lab of lesson 02: learning rate, input scale and number format, and three fixes of which one fails."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import torch

from nanlab.course.history import Fix, History
from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Choice, Number
from nanlab.course.lab.map import Line, Map
from nanlab.lessons.loss_explosion import failure, landscape
from nanlab.plots import Chart, format_limit, number

_STEPS = 12  # enough for the slow explosion at step 6, and for a cured run to be seen falling
_RATES = tuple(float(f"{10 ** (n / 4):.2g}") for n in range(-18, 1))  # 3.2e-05 to 1, four a decade
_SCALES = tuple(float(f"{10 ** (n / 4):.2g}") for n in range(-4, 9))  # 0.1 to 100
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
    beginner = ("lr", "scale")
    map = Map(
        "Map: what becomes of the run, by learning rate and input scale",
        "lr",
        "scale",
        _RATES,
        _SCALES,
        landscape.KINDS,
        every=4,
    )

    def compute(self, lr: float, scale: float, dtype: str, divide_inputs_by: float) -> Outcome:
        history = failure.run(lr, scale, getattr(torch, dtype), steps=_STEPS, divide_inputs_by=divide_inputs_by)
        values = {"lr": lr, "scale": scale, "dtype": dtype, "divide_inputs_by": divide_inputs_by}
        return Outcome(history, dtype, self.fix_among(failure.FIXES, values))

    def chart(self, result: Outcome) -> Chart:
        chart = result.history.chart("Loss, step by step", ("loss", "gradient_norm"), result.dtype)
        return replace(chart, x_range=(-0.4, _STEPS - 0.6))  # the same for every run, so that runs can be compared

    def sentence(self, result: Outcome) -> str:
        told = _bad(result) if not result.history.finite else _finite(result.history)
        return told if result.fix is None else f"{told} {result.fix.verdict}"

    def summary(self, result: Outcome) -> str:
        history = result.history
        end = number(history.loss[-1], 2 if result.dtype == "float32" else 0)
        bad = "none" if history.finite else history.first_bad_step
        return f"start {number(history.loss[0], 3)}, end {end} · first non-finite step {bad}"

    def plain(self, result: Outcome) -> str:
        history, step = result.history, result.history.first_bad_step
        if step is None and history.loss[-1] < history.loss[0]:
            return f"It works: the loss falls from {number(history.loss[0], 3)} to {number(history.loss[-1], 3)}."
        if step is None:
            return "Still numbers, but the loss is growing: give it more steps and it breaks."
        if step == 0:
            return "It breaks at once: the first loss is already larger than the computer can write down."
        return f"Each step overshoots further than the last. At step {step} the loss is too large to write down: inf."

    def formula(self, result: Outcome) -> str:
        scale, divide = self.values["scale"], self.values["divide_inputs_by"]
        with torch.random.fork_rng(devices=[]):
            edge = 2 / landscape.largest_curvature(scale, divide)
        side = "below" if self.values["lr"] < edge else "above"
        return f"At the first step 2/λmax = {number(edge, 2)}; the learning rate is {side} it."

    def fate(self, result: Outcome) -> tuple[int, str]:
        return landscape.fate(result.history)

    def theory(self) -> tuple[Line, ...]:
        """lr = 2/λmax at the first step, as columns by rows."""
        with torch.random.fork_rng(devices=[]):
            divide = self.values["divide_inputs_by"]
            edges = [2 / landscape.largest_curvature(scale, divide) for scale in _SCALES]
        points = [(4 * math.log10(edge) + 18, row) for row, edge in enumerate(edges)]
        return (Line("learning rate = 2/λmax", [(x, y) for x, y in points if 0 <= x <= len(_RATES) - 1]),)

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
