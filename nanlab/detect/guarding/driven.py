"""A guard for a loop that belongs to a framework: the framework calls its step, and the guard lies around that call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from nanlab.detect.guarding.guard import guard

REST = object()  # stands for a batch while the framework does other things than its step


class Driven:
    """``begin(batch)`` before each micro-batch of the framework's loop and ``rest()`` after each step of its optimizer
    stand for the loop over a guard. Where the step went bad, one of them runs it again by ``again(batch)``, under the
    hunt and without stepping, and raises `NonFiniteError`. Options are those of `guard`."""

    def __init__(
        self,
        again: Callable[[Any], object],
        model: nn.Module | None,
        optimizer: Optimizer | Sequence[Optimizer] | None,
        **options: Any,
    ) -> None:
        self.guard = guard(self._batches(), model, optimizer, **options)
        self._again, self._next = again, REST
        self._loop = iter(self.guard)
        self.replaying = False

    def _batches(self) -> Iterator:
        while True:
            yield self._next

    def begin(self, batch: object) -> None:
        self._next = batch
        while (got := next(self._loop)) is not batch:
            self.replaying = True
            try:
                self._again(got)
            finally:
                self.replaying = False

    def rest(self) -> None:
        self.begin(REST)

    def end(self) -> None:
        """The framework's loop ended; what the guard put into torch is taken out."""
        self._loop.close()  # type: ignore[attr-defined]
