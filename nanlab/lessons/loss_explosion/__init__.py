"""Lesson 02, the loss explosion: a learning rate too high for unscaled inputs and targets."""

from nanlab.lessons.loss_explosion.failure import FIXES, SUSPECTS, model, run, train
from nanlab.lessons.loss_explosion.lab import ExplosionLab
from nanlab.lessons.loss_explosion.valley_lab import ValleyLab

__all__ = ["FIXES", "SUSPECTS", "ExplosionLab", "ValleyLab", "model", "run", "train"]
