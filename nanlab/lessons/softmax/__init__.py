"""Lesson 05, softmax: exp overflows, and the log of what underflowed is -inf."""

from nanlab.lessons.softmax.failure import FIXES, SUSPECTS, Classifier, data, loss_of, run, walk
from nanlab.lessons.softmax.lab import SoftmaxLab

__all__ = ["FIXES", "SUSPECTS", "Classifier", "SoftmaxLab", "data", "loss_of", "run", "walk"]
