"""Lesson 11, read the log: what a run printed, when nothing else is left of it."""

from nanlab.lessons.read_the_log.failure import (
    CAUSES,
    FIXES,
    RUNS,
    bad_step,
    batches,
    log,
    reports,
    run,
    suspects_with,
    symptoms,
)
from nanlab.lessons.read_the_log.lab import LogLab

__all__ = [
    "CAUSES",
    "FIXES",
    "RUNS",
    "LogLab",
    "bad_step",
    "batches",
    "log",
    "reports",
    "run",
    "suspects_with",
    "symptoms",
]
