"""A step with a closure (LBFGS): the weights move while it is evaluated, so it is watched and, if need be, undone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING

import torch
from torch.optim import Optimizer

if TYPE_CHECKING:
    from nanlab.detect.guarding.sentry import Sentry


class ClosureStep:
    """Stands in for the closure of one step. The first evaluation is at the weights as they are and is judged; later
    ones probe, and a probe may overflow without harm. Weights and state from before the step are kept until it ends."""

    def __init__(self, sentry: Sentry, optimizer: Optimizer, closure: Callable[[], object]) -> None:
        self._sentry, self._optimizer, self._closure = sentry, optimizer, closure
        self._weights = [(p, p.detach().clone()) for p in sentry.params(optimizer)]
        self._state = {p: deepcopy(state) for p, state in optimizer.state.items()}
        self._evaluations = 0
        self.__name__ = getattr(closure, "__name__", "closure")

    def __call__(self) -> object:
        self._evaluations += 1
        if self._evaluations > 1:
            return self._probe()
        loss = self._closure()
        if not self._sentry.first_evaluation(self._optimizer):
            for p, _ in self._weights:  # no gradient: the optimizer has arrived, as far as it can see
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
        with torch.no_grad():
            for p, kept in self._weights:
                p.copy_(kept)
        state = self._optimizer.state
        for p in [p for p in state if p not in self._state]:
            del state[p]
        state.update(self._state)
