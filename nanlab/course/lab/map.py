"""What a lab's map is: two controls against each other, and what can become of a run at each pair of settings."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """What can become of a run. `tone` is "good", "slow", "rises", "bad" or "worst"; `mark` stands in the legend."""

    label: str
    tone: str
    mark: str = ""


@dataclass(frozen=True)
class Line:
    """A line of theory over the map: for each setting of x, the setting of y at which something changes."""

    label: str
    points: Sequence[tuple[float, float]]  # in columns and rows


@dataclass(frozen=True)
class Map:
    """`x` and `y` are names of two controls, `xs` and `ys` the settings to try."""

    title: str
    x: str
    y: str
    xs: Sequence
    ys: Sequence
    kinds: Sequence[Kind]
    note: str = "Click a cell, or move with the arrow keys: the picture above shows that run."
    every: int = 2  # which columns are named
