"""Lesson 05, softmax: exp overflows, and the log of what underflowed is -inf."""

from nanlab.lessons.softmax.failure import (
    FIRST_BAD_STEP,
    FIRST_BAD_WHERE,
    FIXES,
    FORMS,
    SUSPECTS,
    Classifier,
    Pass,
    data,
    loss_of,
    probabilities,
    run,
    walk,
)
from nanlab.lessons.softmax.lab import SoftmaxLab

__all__ = [
    "FIRST_BAD_STEP",
    "FIRST_BAD_WHERE",
    "FIXES",
    "FORMS",
    "SUSPECTS",
    "Classifier",
    "Pass",
    "SoftmaxLab",
    "data",
    "loss_of",
    "probabilities",
    "run",
    "walk",
]
