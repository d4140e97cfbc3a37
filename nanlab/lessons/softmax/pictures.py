"""Pictures for the beginner's lesson 05: points become weights, weights become shares of a prize."""

import math
from collections.abc import Sequence

import torch

from nanlab.plots import Cell, Grid


def weights(points: Sequence[float], dtype: str = "float32") -> Grid:
    """Each of `points` and its weight, e to that power, in the number format `dtype`."""
    powers = torch.tensor(list(points), dtype=getattr(torch, dtype)).exp()
    rows = [[Cell(f"{p:g} ") for p in points], [_number(v) for v in powers.tolist()]]
    note = "One point more, and the weight is about 2.7 times larger."
    return Grid("Points and weights", rows, ["points", "weight"], note)


def shares(points: Sequence[float], from_the_top: bool = False) -> Grid:
    """How a prize is shared between dishes with `points`, as fp32 computes it.

    With `from_the_top` the best points are taken off all of them first, so that the best dish has 0.
    """
    given = torch.tensor(list(points))
    used = given - given.max() if from_the_top else given
    powers = used.exp()
    total = powers.sum()
    rows = [[Cell(f"{p:g} ") for p in points] + [Cell("", "head")]]
    names = ["points", "weight", "share"]
    if from_the_top:
        rows.append([Cell(f"{p:g} ") for p in used.tolist()] + [Cell("", "head")])
        names.insert(1, "below the best")
    rows.append([*map(_number, powers.tolist()), _number(total.item())])
    rows.append([*map(_percent, (powers / total).tolist()), Cell("", "head")])
    return Grid("Sharing the prize", rows, names, "The last weight is the sum of all weights.")


def _number(value: float) -> Cell:
    """Three digits, written out up to a million; inf and nan stand out."""
    if not math.isfinite(value):
        return Cell(f"{value}", "bad")
    return Cell(f"{value:,.0f}" if 100 <= value < 1e6 else f"{value:.2g} ")


def _percent(value: float) -> Cell:
    return Cell("nan", "bad") if value != value else Cell(f"{100 * value:.0f} %")
