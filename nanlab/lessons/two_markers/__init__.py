"""Lesson 01, two markers: inf and NaN, how one becomes the other, and what one bad cell does to a week."""

from nanlab.lessons.two_markers.failure import (
    BAD_DAYS,
    BASE,
    FIRST_BAD_STEP,
    FIRST_BAD_VALUE,
    FIRST_BAD_WHERE,
    FIXES,
    SLOPE,
    SUSPECTS,
    LineHistory,
    Sheet,
    batches,
    run,
    sheet,
)
from nanlab.lessons.two_markers.number_lab import NumberLab
from nanlab.lessons.two_markers.sheet_lab import SheetLab

__all__ = [
    "BAD_DAYS",
    "BASE",
    "FIRST_BAD_STEP",
    "FIRST_BAD_VALUE",
    "FIRST_BAD_WHERE",
    "FIXES",
    "SLOPE",
    "SUSPECTS",
    "LineHistory",
    "NumberLab",
    "Sheet",
    "SheetLab",
    "batches",
    "run",
    "sheet",
]
