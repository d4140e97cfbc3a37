"""A step with a closure (LBFGS): the weights move while it is evaluated, so it is watched and, if need be, undone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch.optim import Optimizer

from nanlab.detect.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from nanlab.detect.guarding.sentry import Sentry


class ClosureStep:
    """Stands in for the closure of one step. The first evaluation is at the weights as they are and is judged; later
    ones probe, and a probe may overflow without harm. Weights and state from before the step are kept until it ends."""

    def __init__(self, sentry: Sentry, optimizer: Optimizer, closure: Callable[[], object]) -> None:
        self._sentry, self._optimizer, self._closure = sentry, optimizer, closure
        self._before = Checkpoint(sentry.params(optimizer), [optimizer])
        self._evaluations = 0
        self.__name__ = getattr(closure, "__name__", "closure")

    def __call__(self) -> object:
        self._evaluations += 1
        if self._evaluations > 1:
            return self._probe()
        loss = self._closure()
        if not self._sentry.first_evaluation(self._optimizer):
            for p in self._sentry.params(self._optimizer):  # no gradient: it has arrived, as far as it can see
                p.grad = None
        return loss

    def _probe(self) -> object:
        sentry = self._sentry
        deaf, hears, sentry.deaf, sentry.hears_after = sentry.deaf, sentry.hears_after, sys.maxsize, False
        try:
            return self._closure()
        finally:
            sentry.deaf, sentry.hears_after = deaf, hears

    def put_back(self) -> None:
        """Weights and optimizer state as they were before the step."""
        self._before.restore()
