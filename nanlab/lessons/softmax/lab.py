"""The softmax lab of lesson 05: logit scale and number format, three ways to compute one softmax, step by step."""

import math
from dataclasses import dataclass

import torch

from nanlab import formats
from nanlab.course.history import digits
from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Choice, Number
from nanlab.course.lab.map import Kind, Line, Map
from nanlab.lessons.softmax import failure
from nanlab.lessons.softmax.failure import Pass
from nanlab.plots import Chart, Series, format_limit

LOGITS = (0.2, -0.5, 0.6, 0.1, 1.0, -1.0, 0.7, 0.3)  # at scale 1; the maximum rises twice on the way
_LADDER = (1.0, 3.0, 10.0, 11.0, 11.05, 12.0, 30.0, 88.0, 89.0, 100.0, 200.0, 1000.0)
_MAP_SCALES = (1.0, 3.0, 5.0, 8.0, 10.0, 11.0, 12.0, 20.0, 40.0, 80.0, 88.0, 89.0, 100.0, 200.0, 500.0, 700.0, 710.0)
_FORMATS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp64": "float64"}
_FORMS = {"naive": "naive", "shifted by the maximum": "shifted", "online": "online"}
_DIGITS = {"float16": 2, "bfloat16": 1, "float32": 4, "float64": 4}  # what the stored text may show of a sum


@dataclass(frozen=True)
class Outcome:
    """The walk over the logits, the softmax that it gives, and the settings."""

    passes: list[Pass]
    probabilities: list[float]
    dtype: str
    form: str

    @property
    def total(self) -> float:
        return self.passes[-1].total

    @property
    def first_bad(self) -> int | None:
        """The position, from 1, at which the running sum first is not finite."""
        return next((n for n, p in enumerate(self.passes, 1) if not math.isfinite(p.total)), None)


class SoftmaxLab(Lab):
    """One softmax over eight logits for each setting of the controls."""

    controls = (
        Number("scale", "logit scale", 100.0, 0.01, 10_000.0, _LADDER),
        Choice("dtype", "number format", _FORMATS, "float32"),
        Choice("form", "softmax", _FORMS, "naive"),
    )
    buttons = (
        Button("Naive"),
        Button("Shift by the maximum", {"form": "shifted"}),
        Button("Online", {"form": "online"}),
        Button("A smaller scale", {"scale": 10.0}),
        Button("bf16", {"dtype": "bfloat16"}),
    )
    buttons_label = "One change at a time:"
    beginner = ("scale", "form")
    map = Map(
        "Map: what becomes of the softmax, by logit scale and number format",
        "scale",
        "dtype",
        _MAP_SCALES,
        tuple(_FORMATS.values()),
        (
            Kind("all eight probabilities are there", "good"),
            Kind("some probabilities have become 0", "slow"),
            Kind("the sum is inf from position …", "worst", "1"),
        ),
        every=1,
    )

    def compute(self, scale: float, dtype: str, form: str) -> Outcome:
        logits = (torch.tensor(LOGITS, dtype=torch.float64) * scale).to(getattr(torch, dtype))
        if not logits.isfinite().all():
            raise ValueError(f"{formats.get(dtype).name} cannot hold logits of size {scale:g}")
        passes = failure.walk(logits, form)
        top = logits.max() if form != "naive" else 0.0
        shares = (logits - top).exp() / torch.tensor(passes[-1].total, dtype=logits.dtype)
        return Outcome(passes, shares.tolist(), dtype, form)

    def chart(self, result: Outcome) -> Chart:
        places = range(1, len(result.passes) + 1)
        return Chart(
            "Adding up, one logit at a time",
            "position",
            "value",
            (
                Series("running sum", [p.total for p in result.passes], places),
                Series("e to the power taken", [p.power for p in result.passes], places),
            ),
            limits=(format_limit(result.dtype),) if result.form == "naive" else (),
            y_log=True,
            digits=_DIGITS[result.dtype],
        )

    def sentence(self, result: Outcome) -> str:
        if result.first_bad is not None:
            return _overflow(result, result.first_bad)
        told = {"naive": _fits, "shifted": lambda _: _SHIFTED, "online": _online}[result.form](result)
        return told + _vanished(result)

    def summary(self, result: Outcome) -> str:
        bad = result.first_bad
        nans, zeros = (sum(test(p) for p in result.probabilities) for test in (math.isnan, lambda p: p == 0))
        where = "sum finite" if bad is None else f"sum inf from position {bad}"
        return f"{where} · {nans} nan, {zeros} zeros among 8 probabilities"

    def table(self, result: Outcome) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        head = ("position", "logit", "largest so far", "old sum times", "plus", "running sum", "softmax")
        rows = []
        for n, (p, share) in enumerate(zip(result.passes, result.probabilities, strict=True), 1):
            largest = "not asked" if result.form == "naive" else digits(p.largest)
            numbers = (p.rescale, p.power, p.total, share)
            rows.append((str(n), digits(p.logit), largest, *(digits(number, 3) for number in numbers)))
        return head, rows

    def formula(self, result: Outcome) -> str:
        form = formats.get(result.dtype)
        return f"e^x fits {form.name} up to x = log({form.max:.4g}) = {form.exp_limit:.4g}."

    def fate(self, result: Outcome) -> tuple[int, str]:
        if result.first_bad is not None:
            return 2, str(result.first_bad)
        return (1 if 0 in result.probabilities else 0), ""

    def theory(self) -> tuple[Line, ...]:
        """The largest scale at which e to the largest logit, 1 at scale 1, still fits: log of the format's maximum."""
        if self.values["form"] != "naive":
            return ()
        edges = [formats.get(dtype).exp_limit for dtype in _FORMATS.values()]
        columns = [_column(edge) for edge in edges]
        return (Line("scale = log(largest number)", list(zip(columns, range(len(columns)), strict=True))),)

    def settings(self) -> str:
        return super().settings().replace("shifted by the maximum", "shifted")


def _column(scale: float) -> float:
    """Where `scale` lies among the map's columns: half a column past the last one that is not larger."""
    return sum(column <= scale for column in _MAP_SCALES) - 0.5


_SHIFTED = "Every exponent is 0 or less, so no power is above 1 and the sum lies between 1 and 8, at any scale."


def _fits(result: Outcome) -> str:
    form = formats.get(result.dtype)
    return f"No logit is above {form.exp_limit:.4g}, and the sum fits {form.name}."


def _overflow(result: Outcome, n: int) -> str:
    form = formats.get(result.dtype)
    logit, power = result.passes[n - 1].logit, result.passes[n - 1].power
    if math.isfinite(power):
        return f"Each exponential fits {form.name}; at position {n} their sum does not. It is inf: all shares are 0."
    return (
        f"At position {n} the logit is {logit:.4g}, more than {form.exp_limit:.4g}: its exponential does not fit "
        f"{form.name}. The sum is inf from there on; inf divided by inf is nan, and anything else divided by it is 0."
    )


def _online(result: Outcome) -> str:
    rises = [n for n, p in enumerate(result.passes, 1) if p.rescale != 1]
    where = ", ".join(map(str, rises))
    return (
        f"One pass is enough: at position {where} a new maximum comes, and the sum so far is multiplied down to it. "
        f"It ends at {result.total:.4g}, as the shifted sum does."
    )


def _vanished(result: Outcome) -> str:
    zeros = sum(p == 0 for p in result.probabilities)
    if not zeros:
        return ""
    return f" {zeros} of the 8 probabilities are 0 in {formats.get(result.dtype).name}: a logarithm of them is -inf."
