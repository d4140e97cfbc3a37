"""Two markers: a day without visitors in a shop's records makes nan (0/0) or inf (5/0), and training spreads it.

A straight line learns a day's income from its share of buyers, sold / visitors. Taught in lesson 01. Sources: IEEE
754-2019, sections 7.2 (invalid operation) and 7.3 (division by zero).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from nanlab.course.history import Fix, History, digits

SUSPECTS = ("log_or_div_of_zero", "bad_data")
FIRST_BAD_STEP = 3  # the batch that holds the bad day, for both bad days
FIRST_BAD_WHERE = "activation"  # the share, before the line sees it
FIRST_BAD_VALUE = {"empty": "nan", "unrecorded": "inf"}  # what 0/0 and 5/0 are

BAD_DAYS = {"none": (6.0, 20.0), "empty": (0.0, 0.0), "unrecorded": (5.0, 0.0)}  # sold, visitors
SLOPE, BASE = 2.0, 0.1  # income = SLOPE * share + BASE: what the line has to find

FIXES = (
    Fix(
        "drop_rows",
        "Leave out days without visitors",
        {"drop": True},
        cures=True,
        why="A day without visitors has no share, so nothing is divided by zero and no other day is touched.",
    ),
    Fix(
        "replace",
        "Replace nan and inf in the shares with nan_to_num",
        {"replace": True},
        cures=False,
        why="0/0 becomes a day on which nobody bought, 5/0 becomes 3.4e+38: one bends the line, the other overflows.",
    ),
    Fix(
        "skip_nan_loss",
        "Skip the step when loss != loss",
        {"skip_nan": True},
        cures=False,
        why="inf != inf is False: the step with an infinite loss is taken, and the weights are infinite after it.",
    ),
)


class Sheet(NamedTuple):
    """What a spreadsheet makes of a week: one entry a day, and the average."""

    share: torch.Tensor  # (days,)
    average: torch.Tensor  # scalar
    difference: torch.Tensor  # (days,), each day's share minus the average


def sheet(sold: torch.Tensor, visitors: torch.Tensor, treat: str = "keep") -> Sheet:
    """Share, average and difference of a week, both inputs (days,) and of one dtype.

    `treat` says what becomes of a share that is not finite: "keep" it, "leave out" of the average (it stays in the
    sheet), or "replace" it by 0. ValueError for another word.
    """
    if treat not in ("keep", "leave out", "replace"):
        raise ValueError(f"treat is 'keep', 'leave out' or 'replace', got {treat!r}")
    share = sold / visitors
    if treat == "replace":
        share = share.nan_to_num(0.0, 0.0, 0.0)
    average = share[share.isfinite()].mean() if treat == "leave out" else share.mean()
    return Sheet(share, average, share - average)


def batches(bad_day: str = "none", seed: int = 0) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Six batches of four days each: sold, visitors and income, all float32 of shape (4,).

    `bad_day` is a key of ``BAD_DAYS``; it stands in batch 3, row 1. Its income is that of a share of 0.3. Draws whole
    numbers alone, from a generator of its own: the same on every machine.
    """
    draw = torch.Generator().manual_seed(seed)
    visitors = torch.randint(20, 60, (6, 4), generator=draw).float()
    sold = torch.randint(2, 20, (6, 4), generator=draw).float()
    sold[3, 1], visitors[3, 1] = BAD_DAYS["none"]
    income = SLOPE * sold / visitors + BASE
    sold[3, 1], visitors[3, 1] = BAD_DAYS[bad_day]
    return list(zip(sold, visitors, income, strict=True))


@dataclass
class LineHistory(History):
    """A `History` that keeps the line at the end of the run; `largest_activation` is the largest share."""

    slope: float = 0.0
    base: float = 0.0

    def first_marker(self) -> str:
        """The first value that is no number and its step: ``inf at step 3``."""
        step = self.first_bad_step
        return "none" if step is None else f"{digits(self.loss[step])} at step {step}"


def run(
    bad_day: str = "empty",
    lr: float = 0.5,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    steps: int = 6,
    drop: bool = False,
    replace: bool = False,
    skip_nan: bool = False,
    stop: bool = True,
) -> LineHistory:
    """Fit the line from (0, 0) with plain SGD, one batch a step, in order and over again; about 0.1 ms a step.

    `drop`, `replace` and `skip_nan` are the fixes, see ``FIXES``. `stop` ends the run at the first step that is not
    finite; without it the run goes on, to show what becomes of the weights.
    """
    weights = torch.zeros(2, dtype=dtype)  # slope and base
    history, days = LineHistory(), batches(bad_day, seed)
    for step in range(steps):
        sold, visitors, income = (column.to(dtype) for column in days[step % len(days)])
        share, income = _features(sold, visitors, income, drop, replace)
        loss, gradient = _loss_and_gradient(weights, share, income)
        skipped = skip_nan and bool(loss != loss)
        _record(history, step, share, loss, gradient, weights, skipped)
        if stop and not history.finite:
            break
        if not skipped:
            weights = weights - lr * gradient
    history.slope, history.base = weights.tolist()
    return history


def _features(sold, visitors, income, drop: bool, replace: bool) -> tuple[torch.Tensor, torch.Tensor]:
    if drop:
        sold, visitors, income = (column[visitors > 0] for column in (sold, visitors, income))
    share = sold / visitors
    return (share.nan_to_num() if replace else share), income


def _loss_and_gradient(weights, share, income) -> tuple[torch.Tensor, torch.Tensor]:
    error = weights[0] * share + weights[1] - income
    gradient = torch.stack([(2 * error * share).mean(), (2 * error).mean()])
    return error.square().mean(), gradient


def _record(history: LineHistory, step: int, share, loss, gradient, weights, skipped: bool) -> None:
    values = {
        "activation": share.abs().max().item(),
        "loss": loss.item(),
        "gradient": gradient.norm().item(),
        "weight": weights.abs().max().item(),
    }
    history.note(step, values, taken=not skipped)
