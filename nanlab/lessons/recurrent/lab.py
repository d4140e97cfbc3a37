"""The recurrent lab of lesson 06: a gradient's way back through time, beside what the growth law predicts."""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch

from nanlab.course.history import plain_number
from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Choice, Number
from nanlab.course.lab.map import Kind, Line, Map
from nanlab.lessons.recurrent.through_time import Trace, trace
from nanlab.plots import Chart, Mark, Series, format_limit, number

_FORMATS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp64": "float64"}
_MAP_RADII = (0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0)
_MAP_LENGTHS = (10, 20, 50, 100, 200, 300)  # a longer one would take most of the time
_SEQUENCES = {"numbers": "numbers", "silence first": "silence"}
_CLIPS = {"no clipping": 0.0, "1": 1.0, "20": 20.0, "1,000": 1000.0}
_PLACES = {
    "state": "the state",
    "loss": "the loss",
    "gradient": "the gradient",
    "weight gradient": "a weight's gradient",
}


@dataclass(frozen=True)
class Pass:
    """One pass forward and back, and the settings that its picture needs."""

    trace: Trace
    lr: float
    clip: float
    dtype: str

    @property
    def digits(self) -> int:
        return 0 if self.dtype in ("float16", "bfloat16") else 3


class RecurrentLab(Lab):
    """One backward pass of ``through_time.trace`` for each setting of the controls."""

    controls = (
        Number("radius", "spectral radius", 1.1, 0.1, 10.0, (0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0)),
        Number("length", "sequence length", 100, 2, 400, (10, 20, 50, 100, 150, 200, 250, 300, 400), whole=True),
        Choice("activation", "activation", ("linear", "tanh", "relu"), "linear"),
        Choice("sequence", "sequence", _SEQUENCES, "numbers"),
        Choice("clip", "clip the norm at", _CLIPS, 0.0),
        Number("lr", "learning rate", 0.001, 1e-9, 10.0, (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)),
        Choice("dtype", "number format", _FORMATS, "float32"),
    )
    buttons = (
        Button("No fix"),
        Button("Clip the norm at 1", {"clip": 1.0}),
        Button("Spectral radius 1", {"radius": 1.0}),
        Button("Sequences of 20", {"length": 20}),
    )
    buttons_label = "One fix at a time:"
    beginner = ("radius", "length", "activation")
    map = Map(
        "Map: what becomes of the gradient, by spectral radius and sequence length",
        "radius",
        "length",
        _MAP_RADII,
        _MAP_LENGTHS,
        (
            Kind("within a factor of 1,000 of the last one", "good"),
            Kind("vanishes: less than a thousandth", "slow", "↓"),
            Kind("explodes: more than 1,000 times, still finite", "rises", "↑"),
            Kind("not finite on the way back", "bad", "←"),
            Kind("not finite on the way forward", "worst", "→"),
        ),
        every=2,
    )

    def compute(self, radius, length, activation, sequence, clip, lr, dtype) -> Pass:
        silent = sequence == "silence"
        result = trace(radius, length, activation, silent, clip or None, getattr(torch, dtype))
        return Pass(result, lr, clip, dtype)

    def chart(self, result: Pass) -> Chart:
        seen = result.trace
        series = [Series("gradient norm", seen.gradient), Series("last norm × radius^(steps back)", seen.law)]
        if result.clip and seen.norm and math.isfinite(seen.norm):
            series.append(Series("after clipping", [value * seen.clipped / seen.norm for value in seen.gradient]))
        marks = []
        if seen.first_bad_where is not None and seen.first_bad_time is not None:
            place = _PLACES[seen.first_bad_where]
            marks.append(Mark(seen.first_bad_time, f"{place} not finite at time step {seen.first_bad_time}"))
        limits = (format_limit(result.dtype),)
        title = "The gradient at each time step (backward runs from right to left)"
        return Chart(title, "time step", "gradient norm", series, limits=limits, marks=marks, y_log=True,
                     digits=result.digits)  # fmt: skip

    def sentence(self, result: Pass) -> str:
        return f"{_told(result)} {_step(result)}".strip()

    def summary(self, result: Pass) -> str:
        seen, digits = result.trace, result.digits
        first, last = number(seen.gradient[0], digits), number(seen.gradient[-1], digits)
        bad = "none" if seen.first_bad_where is None else seen.first_bad_where
        when = "" if seen.first_bad_time is None else f" at time step {seen.first_bad_time}"
        return f"gradient {last} at the last time step, {first} at the first · first non-finite: {bad}{when}"

    def table(self, result: Pass) -> tuple[list[str], list[list[str]]]:
        seen = result.trace
        rows = [
            ["loss", number(seen.loss, 3)],
            ["largest state, at the end", number(seen.state[-1], 3)],
            ["norm of all weights' gradients", number(seen.norm, 3)],
            ["the same after clipping", number(seen.clipped, 3)],
            ["length of the step (learning rate × norm)", number(result.lr * seen.clipped, 3)],
        ]
        return ["quantity", "value"], rows

    def formula(self, result: Pass) -> str:
        steps = len(result.trace.gradient) - 1
        radius = float(self.values["radius"])
        return f"The law: radius^(steps back) = {radius:g}^{steps} = 10^{steps * math.log10(radius):.1f}."

    def fate(self, result: Pass) -> tuple[int, str]:
        seen = result.trace
        if seen.first_bad_where is not None:
            return (4, "→") if seen.first_bad_where in ("state", "loss") else (3, "←")
        factor = seen.gradient[0] / seen.gradient[-1] if seen.gradient[-1] else 0.0
        return (1, "↓") if factor < 1e-3 else (2, "↑") if factor > 1e3 else (0, "")

    def theory(self) -> tuple[Line, ...]:
        """radius^(length − 1) = 1,000 and 1/1,000, where the law without an activation puts the borders."""
        lines = []
        for sign, label in ((1, "radius^(steps back) = 1,000"), (-1, "radius^(steps back) = 1/1,000")):
            points = [(_column(10 ** (sign * 3 / (length - 1))), row) for row, length in enumerate(_MAP_LENGTHS)]
            lines.append(Line(label, [(column, row) for column, row in points if column is not None]))
        return tuple(lines)

    def settings(self) -> str:
        return super().settings().replace(", clip=0,", ",")


def _column(radius: float) -> float | None:
    """Where `radius` lies among the map's columns, between two of them in proportion; None beyond the ends."""
    for n, (low, high) in enumerate(pairwise(_MAP_RADII)):
        if low <= radius <= high:
            return n + (radius - low) / (high - low)
    return None


def _told(result: Pass) -> str:
    seen = result.trace
    if seen.first_bad_where is not None:
        return _bad(seen, seen.first_bad_where, format_limit(result.dtype).label)
    steps = len(seen.gradient) - 1
    first, last = seen.gradient[0], seen.gradient[-1]
    if first == 0 or last == 0:
        return "The gradient is exactly 0 at the first time step: it has vanished."
    factor, law = first / last, seen.law[0] / last
    per_step = factor ** (1 / steps)
    if abs(factor - 1) < 0.01 and seen.radius == 1:
        return f"The gradient is as large {steps} time steps back as at the last one: nothing grows, nothing fades."
    grew = f"{steps} time steps back the gradient is {_times(factor)} times what it is at the last one"
    fits = abs(per_step / seen.radius - 1) < 0.01
    verdict = "as the law says" if fits else f"where the law, which knows no activation, says {_times(law)} times"
    return f"{grew}, a factor of {number(per_step, 3)} a step, {verdict}."


def _bad(seen: Trace, where: str, limit: str) -> str:
    when = "" if seen.first_bad_time is None else f", at time step {seen.first_bad_time}"
    told = f"The first value that is not finite is {_PLACES[where]}{when}, past {limit}."
    if where in ("state", "loss"):
        return f"{told} It happened on the way forward, so no clipping of gradients can help."
    return f"{told} States and loss are finite: this overflow happened on the way back."


def _step(result: Pass) -> str:
    seen = result.trace
    if not result.clip:
        return ""
    if not math.isfinite(seen.norm):
        left = number(seen.clipped, 3) if math.isfinite(seen.clipped) else "not finite"
        return f"The norm itself is {seen.norm:g} and clipping leaves {left}: nothing is learnt from this step."
    if seen.norm <= result.clip:
        return "The norm is below the threshold: clipping changes nothing."
    shorter = _times(seen.norm / seen.clipped)
    return f"Clipping makes the step {shorter} times shorter and leaves the slope of the curve as it was."


def _times(factor: float) -> str:
    return plain_number(factor, 3) if 0.001 < factor < 1e7 else number(factor, 3)
