"""Lesson 06, recurrent networks: gradients that explode through time."""

from nanlab.lessons.recurrent.failure import FIXES, SUSPECTS, Adder, batch, length_of, run
from nanlab.lessons.recurrent.lab import RecurrentLab
from nanlab.lessons.recurrent.whisper_lab import WhisperLab

__all__ = ["FIXES", "SUSPECTS", "Adder", "RecurrentLab", "WhisperLab", "batch", "length_of", "run"]
