"""The padding lab of lesson 03: share of padding rows, epsilon, what each row is divided by, and number format."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from nanlab import formats
from nanlab.course.history import Fix, History, digits
from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Choice, Number
from nanlab.course.lab.map import Kind, Map
from nanlab.lessons.padding_row import failure
from nanlab.plots import Chart, number

_STEPS = 24  # every batch twice
_FORMATS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_ALWAYS = ("share", "eps", "dtype")
_WORDS = {"activation": "the scaled row", "loss": "the loss", "gradient": "the gradient", "weight": "a weight"}


@dataclass(frozen=True)
class Row:
    """What happens to the padding row in its batch before any training, as numbers of the format."""

    size: float
    divisor: float
    quotient: float
    gradient: float


@dataclass(frozen=True)
class Outcome:
    """A run, its settings, its padding row (None without one), and the fix that these settings amount to."""

    history: History
    settings: dict[str, Any]
    row: Row | None
    fix: Fix | None


class PaddingLab(Lab):
    """One run of ``failure.run`` for each setting of the controls."""

    controls = (
        Number("share", "share of padding rows", 0.01, 0.0, 1.0, (0.0, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5)),
        Number("eps", "epsilon", 0.0, 0.0, 1.0, (0.0, 1e-45, 1e-12, 1e-8, 1e-7, 1e-6, 1e-4, 1e-2, 1.0)),
        Choice("divide_by", "divide each row by", {"its norm": "norm", "its mean magnitude": "mean"}, "norm"),
        Choice("dtype", "number format", _FORMATS, "float32"),
        Number("lr", "learning rate", 0.5, 1e-6, 2.0, (0.001, 0.01, 0.1, 0.5, 1.0)),
        Number("scale", "input scale", 1.0, 0.001, 1000.0, (0.01, 0.1, 1.0, 10.0, 100.0)),
        Choice("mend", "then", ("nothing", "nan_to_num", "where"), "nothing"),
    )
    buttons = (Button("No fix"), *(Button(f.title, f.knobs) for f in failure.FIXES if f.name != "leave_padding_out"))
    buttons_label = "One fix at a time:"
    beginner = ("share", "eps")
    map = Map(
        "Map: what becomes of the run, by epsilon and number format",
        "eps",
        "dtype",
        (0.0, 1e-45, 1e-30, 1e-20, 1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0),
        tuple(_FORMATS.values()),
        (
            Kind("finite, and the loss falls", "good"),
            Kind("finite, and it does not fall", "slow"),
            Kind("0/0: the scaled row is nan at step …", "worst", "5"),
            Kind("finite forward; the gradient is not, at step …", "bad", "5"),
        ),
        every=1,
    )

    def compute(self, **values) -> Outcome:
        knobs = values | {"dtype": getattr(torch, values["dtype"])}
        history = failure.run(**knobs, steps=_STEPS)
        row = _padding_row(knobs) if values["share"] else None
        return Outcome(history, values, row, self.fix_among(failure.FIXES, values))

    def chart(self, result: Outcome) -> Chart:
        title = "Loss and gradient norm, step by step"
        chart = result.history.chart(title, ("loss", "gradient_norm"), None)
        return replace(chart, x_range=(-0.8, _STEPS - 0.2))  # the same for every run

    def sentence(self, result: Outcome) -> str:
        told = f"{_epsilon(result)}{_told(result)}"
        return told if result.fix is None else f"{told} {result.fix.verdict}"

    def summary(self, result: Outcome) -> str:
        history = result.history
        if history.finite:
            return "finite · first non-finite step none"
        return f"first non-finite step {history.first_bad_step}, in {_WORDS[str(history.first_bad_where)]}"

    def table(self, result: Outcome) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        head = ("padding row, at the start", "its size", "divided by", "quotient", "gradient that comes back")
        if result.row is None:
            return head, (("there is none", "–", "–", "–", "–"),)
        row = result.row
        shown = (digits(v, 2) for v in (row.size, row.divisor, row.quotient, row.gradient))
        return head, (("row 2 of batch 5", *shown),)

    def fate(self, result: Outcome) -> tuple[int, str]:
        history = result.history
        if history.finite:
            return (0 if history.loss[-1] < history.loss[0] else 1), ""
        return (3 if history.first_bad_where == "gradient" else 2), str(history.first_bad_step)

    def settings(self) -> str:
        """Share, epsilon and format always; the others where they differ from the start."""
        shown = [c for c in self.controls if c.name in _ALWAYS or self.values[c.name] != c.value]
        return ", ".join(control.say(self.values[control.name]) for control in shown)


def _padding_row(knobs: dict[str, Any]) -> Row:
    """Forward and backward through batch 5 at the initial weights."""
    rows, targets = failure.data(knobs["share"], knobs["scale"])
    model = failure.Encoder(knobs["eps"], knobs["divide_by"], knobs["mend"]).to(knobs["dtype"])
    batch, place = failure.PADDING_ROW
    hidden = model.project(rows[batch].to(knobs["dtype"])).detach().requires_grad_()
    unit = model.scale_rows(hidden)
    loss = torch.nn.functional.mse_loss(model.head(unit), targets[batch].to(knobs["dtype"]))
    gradient = torch.autograd.grad(loss, hidden)[0]
    divisor = max(0.0, formats.get(knobs["dtype"]).round(knobs["eps"]))  # the row's own size is 0
    return Row(hidden[place].norm().item(), divisor, unit[place, 0].item(), gradient[place].abs().max().item())


def _epsilon(result: Outcome) -> str:
    """What becomes of the epsilon in the format, where that is worth saying."""
    eps, form = result.settings["eps"], formats.get(result.settings["dtype"])
    if eps and not form.holds_epsilon(eps):
        least = f"{form.smallest_subnormal:.1e}"
        return f"{form.name} holds nothing smaller than {least}: an epsilon of {eps:g} is 0 in it. "
    return ""


def _told(result: Outcome) -> str:
    history = result.history
    if history.finite:
        span = f"from {number(history.loss[0], 2)} to {number(history.loss[-1], 2)} in {len(history.loss)} steps"
        return f"Every value stays finite; the loss goes {span}."
    step, where = history.first_bad_step, history.first_bad_where
    if where == "activation":
        calm = " No step before it hints at that." if step else ""
        return f"Step {step} meets the first padding row: 0 divided by 0 is nan.{calm}"
    if where == "gradient" and result.settings["mend"] == "nothing":
        return (
            f"At step {step} the values are finite and the gradient is not: backward divides by the epsilon, "
            "which overflows, and infinity times the zeros of the padding row is nan."
        )
    return f"At step {step} the loss is still finite and the gradient is nan; the update would spoil the weights."
