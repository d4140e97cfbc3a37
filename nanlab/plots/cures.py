"""Picture for the beginner's lesson 11: three causes of one symptom, three cures, and which cure helps which."""

from nanlab.failures.one_symptom import CAUSES, FIXES, run
from nanlab.plots.grid import Cell, Grid

SHORT = {"clamp_the_norm": "no division by 0", "check_the_file": "check the rows", "count_first": "count first"}


def cures() -> Grid:
    """Every cause with every cure, each run again: alive or dead. Nine short runs, about 20 ms."""
    head = [Cell(SHORT[fix.name], "head") for fix in FIXES]
    rows = [[_cell(run(cause, **fix.knobs).finite) for fix in FIXES] for cause in CAUSES]
    note = "Down: what was wrong. Across: the one thing that was changed."
    return Grid("Three causes, three cures", [head, *rows], ["", *CAUSES], note)


def _cell(alive: bool) -> Cell:
    return Cell("alive", "good") if alive else Cell("dead", "bad")
