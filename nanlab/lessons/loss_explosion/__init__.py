"""Lesson 02, the loss explosion: a learning rate too high for unscaled inputs and targets."""

from nanlab.lessons.loss_explosion.failure import (
    FIRST_BAD_STEP,
    FIRST_BAD_WHERE,
    FIXES,
    SUSPECTS,
    data,
    model,
    run,
    train,
)
from nanlab.lessons.loss_explosion.lab import ExplosionLab

__all__ = ["FIRST_BAD_STEP", "FIRST_BAD_WHERE", "FIXES", "SUSPECTS", "ExplosionLab", "data", "model", "run", "train"]
