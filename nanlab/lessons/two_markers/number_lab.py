"""The number lab of lessons 01 and 04: one number in five formats, bit by bit, and how it overflows."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Choice, Number
from nanlab.formats import BF16, FP8_E4M3, FP8_E5M2, FP16, FP32, Format
from nanlab.plots import Cell, Grid

SHOWN = (FP32, BF16, FP16, FP8_E5M2, FP8_E4M3)
_LADDER = (-65504, -1, 0, 3e-8, 6e-8, 0.1, 1, 2, 240, 448, 2048, 57344, 65504, 65519, 65520, 1e5, 3e38)


def _divide_by_zero(value: float) -> float:
    return math.nan if value == 0 or math.isnan(value) else math.copysign(math.inf, value)


_OPERATIONS: dict[str, Callable[[float], float]] = {  # in exact arithmetic, which each format then rounds
    "nothing": lambda x: x,
    "+ 15": lambda x: x + 15,
    "+ 16": lambda x: x + 16,
    "× 2": lambda x: x * 2,
    "× itself": lambda x: x * x,
    "÷ 0": _divide_by_zero,
    "− itself": lambda x: x - x,
    "× 0": lambda x: x * 0,
}
_STEPS = {"to the next value up": Format.up, "to the next value down": Format.down}
_CHOICES = (*_OPERATIONS, *_STEPS)


@dataclass(frozen=True)
class Numbers:
    """What each of ``SHOWN`` holds in the end, and how it was made."""

    value: float
    operations: tuple[str, str]
    held: dict[str, float]  # by the format's name


def apply(fmt: Format, operation: str, value: float) -> float:
    """`value`, one of `fmt`, after `operation`, rounded to `fmt` as torch rounds an operation with a Python number."""
    if operation in _STEPS:
        return _STEPS[operation](fmt, value)
    return fmt.round(_OPERATIONS[operation](value))


class NumberLab(Lab):
    """A value in five number formats: sign, exponent and mantissa bits, and the next value up."""

    controls = (
        Number("value", "value", 65504, ladder=_LADDER, hint="for example 65519 or 6e-8"),
        Choice("first", "then", _CHOICES, "nothing"),
        Choice("second", "and then", _CHOICES, "nothing"),
    )
    buttons = (
        Button("65504 + 15", {"first": "+ 15"}),
        Button("65504 + 16", {"first": "+ 16"}),
        Button("inf − inf in fp16", {"first": "× 2", "second": "− itself"}),
        Button("0 ÷ 0", {"value": 0, "first": "÷ 0"}),
    )
    buttons_label = "Try:"
    beginner = ("value", "first")

    def compute(self, value: float, first: str, second: str) -> Numbers:
        held = {f.name: apply(f, second, apply(f, first, f.round(value))) for f in SHOWN}
        return Numbers(value, (first, second), held)

    def chart(self, result: Numbers) -> Grid:
        rows = [_bits(fmt, result.held[fmt.name]) for fmt in SHOWN]
        labels = [f"{fmt.name}  {_say(result.held[fmt.name])}" for fmt in SHOWN]
        return Grid(_title(result), rows, labels, note="pink: sign   blue: exponent   yellow: mantissa")

    def table(self, result: Numbers) -> tuple[list[str], list[list[str]]]:
        rows = [[f.name, _say(result.held[f.name]), *_neighbour(f, result.held[f.name])] for f in SHOWN]
        return ["format", "holds", "next value up", "gap to it"], rows

    def sentence(self, result: Numbers) -> str:
        bad = [f"{name} {_say(held)}" for name, held in result.held.items() if not math.isfinite(held)]
        good = [f"{name} {_say(held)}" for name, held in result.held.items() if math.isfinite(held)]
        if not bad:
            return f"All five formats hold a finite number: {', '.join(good)}."
        if not good:
            return f"No format holds a finite number: {', '.join(bad)}."
        return f"Not finite: {', '.join(bad)}. Finite: {', '.join(good)}."

    def summary(self, result: Numbers) -> str:
        return ", ".join(f"{name} {_say(held)}" for name, held in result.held.items())

    def settings(self) -> str:
        return _title(self.result)


def _bits(fmt: Format, value: float) -> list[Cell]:
    fields = zip(("sign", "exponent", "mantissa"), fmt.bit_fields(value), strict=True)
    return [Cell(bit, tone) for tone, bits in fields for bit in bits]


def _neighbour(fmt: Format, value: float) -> tuple[str, str]:
    up = fmt.up(value)
    gap = up - value
    if not math.isfinite(value):
        return "none", "none"
    return f"{up:.9g}", f"{gap:.3g}" if math.isfinite(gap) else "none"


def _title(result: Numbers) -> str:
    done = [operation for operation in result.operations if operation != "nothing"]
    return ", then ".join([f"{result.value:g}", *done])


def _say(value: float) -> str:
    return f"{value:.5g}"
