"""Lesson 06, recurrent networks: gradients that explode through time."""

from nanlab.lessons.recurrent.failure import (
    FIRST_BAD_STEP,
    FIRST_BAD_WHERE,
    FIXES,
    LONG,
    SHORT,
    SUSPECTS,
    UNITS,
    Adder,
    SequenceHistory,
    batch,
    length_of,
    run,
)
from nanlab.lessons.recurrent.lab import RecurrentLab
from nanlab.lessons.recurrent.through_time import Trace, overflow_length, trace
from nanlab.lessons.recurrent.whisper_lab import WhisperLab

__all__ = [
    "FIRST_BAD_STEP",
    "FIRST_BAD_WHERE",
    "FIXES",
    "LONG",
    "SHORT",
    "SUSPECTS",
    "UNITS",
    "Adder",
    "RecurrentLab",
    "SequenceHistory",
    "Trace",
    "WhisperLab",
    "batch",
    "length_of",
    "overflow_length",
    "run",
    "trace",
]
