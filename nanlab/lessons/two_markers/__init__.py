"""Lesson 01, two markers: inf and NaN, how one becomes the other, and what one bad cell does to a week."""

from nanlab.lessons.two_markers.failure import FIXES, SUSPECTS, batches, run, sheet
from nanlab.lessons.two_markers.number_lab import NumberLab
from nanlab.lessons.two_markers.sheet_lab import SheetLab

__all__ = ["FIXES", "SUSPECTS", "NumberLab", "SheetLab", "batches", "run", "sheet"]
