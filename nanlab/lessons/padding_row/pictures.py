"""Pictures for the beginner's lesson 03: baskets of fruit, the share of each kind in a basket, and an empty basket."""

import torch

from nanlab.plots import Cell, Grid

KINDS = ("apples", "pears", "plums")
COUNTS = ((6, 2, 0), (1, 3, 4), (0, 0, 0), (5, 0, 5))
SENTENCES = ("the cat sat on the mat", "it rains", "", "nobody is at home")


def shares(at_least: float = 0.0, leave_out_empty: bool = False) -> Grid:
    """The share of each kind in each basket and the average share, as torch computes them.

    The divisor is the number of fruits, or `at_least` where that is larger; `leave_out_empty` takes the empty basket
    out before anything is divided.
    """
    fruit = torch.tensor(COUNTS, dtype=torch.float32)
    names = ["basket 1", "basket 2", "basket 3", "basket 4"]
    if leave_out_empty:
        names = [name for name, row in zip(names, COUNTS, strict=True) if any(row)]
        fruit = fruit[fruit.sum(dim=1) > 0]
    share = fruit / fruit.sum(dim=1, keepdim=True).clamp_min(at_least)
    rows = [_head(), *map(_percent, share), _percent(share.mean(dim=0))]
    note = "nan marks what has no answer." if share.isnan().any() else "Every share is a number."
    return Grid("Share of each kind in its basket", rows, ["", *names, "average"], note)


def sentences() -> Grid:
    """Sentences of different lengths in a table with six columns, filled up with zeros; one line is empty."""
    rows = []
    for sentence in SENTENCES:
        words = sentence.split()
        rows.append([Cell(word) for word in words] + [Cell("0", "quiet")] * (6 - len(words)))
    note = "A 0 fills a place that holds no word. One line holds no word at all."
    return Grid("Four lines of text in one table", rows, [f"line {n}" for n in range(1, 5)], note)


def _head() -> list[Cell]:
    return [Cell(kind, "head") for kind in KINDS]


def _percent(row: torch.Tensor) -> list[Cell]:
    return [Cell("nan", "bad") if v != v else Cell(f"{100 * v:.0f} %", "plain") for v in row.tolist()]
