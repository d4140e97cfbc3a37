"""Lesson 03, the padding row: 0/0 in a row of zeros, and what anomaly mode sees of it."""

from nanlab.lessons.padding_row.failure import FIXES, PADDING_ROW, SUSPECTS, Encoder, bad_step, data, run
from nanlab.lessons.padding_row.lab import PaddingLab

__all__ = ["FIXES", "PADDING_ROW", "SUSPECTS", "Encoder", "PaddingLab", "bad_step", "data", "run"]
