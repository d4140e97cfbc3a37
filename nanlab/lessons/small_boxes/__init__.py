"""Lesson 04, small boxes: fp16 overflows at 65,504, and its gradients round to zero."""

from nanlab.lessons.small_boxes.failure import FIXES, SUSPECTS, UNDERFLOW, run, with_fix
from nanlab.lessons.small_boxes.lab import HalfLab
from nanlab.lessons.small_boxes.ruler import RulerLab

__all__ = ["FIXES", "SUSPECTS", "UNDERFLOW", "HalfLab", "RulerLab", "run", "with_fix"]
