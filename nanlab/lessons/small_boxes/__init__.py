"""Lesson 04, small boxes: fp16 overflows at 65,504, and its gradients round to zero."""

from nanlab.lessons.small_boxes.failure import (
    FIRST_BAD_STEP,
    FIRST_BAD_WHERE,
    FIXES,
    SUSPECTS,
    UNDERFLOW,
    UNDERFLOW_FIXES,
    HalfHistory,
    autocast,
    forward,
    run,
    with_fix,
)
from nanlab.lessons.small_boxes.lab import HalfLab

__all__ = [
    "FIRST_BAD_STEP",
    "FIRST_BAD_WHERE",
    "FIXES",
    "SUSPECTS",
    "UNDERFLOW",
    "UNDERFLOW_FIXES",
    "HalfHistory",
    "HalfLab",
    "autocast",
    "forward",
    "run",
    "with_fix",
]
