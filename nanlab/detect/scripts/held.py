"""A step that went bad and has not been used yet: the script may still drop it, and that is no failure."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.optim import Optimizer

from nanlab.detect.guarding.failure import Failure
from nanlab.detect.origin.report import Report
from nanlab.detect.state.training import parameters, state_tensors
from nanlab.detect.state.values import is_finite


class Held:
    """What is kept of a bad step until it is known what becomes of it. `report` is None where it was not hunted."""

    def __init__(self, failure: Failure, report: Report | None) -> None:
        self.failure, self.report = failure, report
        self._before: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def used(self, params: Sequence[Tensor], grads: Sequence[Tensor]) -> bool:
        """Whether something bad is left that the next step takes up: gradients, or weights changed by hand."""
        return not all(map(is_finite, grads)) or not all(is_finite(p.detach()) for p in params)

    def cleared(self, grads: Sequence[Tensor]) -> bool:
        """Whether nothing is left of its gradients."""
        return not any(bool(g.any()) for g in grads)

    def before_step(self, optimizer: Optimizer) -> None:
        """Copies what `optimizer` may change. Cost: its weights and state once, in memory too."""
        self._before[id(optimizer)] = [(t, t.detach().clone()) for t in _all(optimizer)]

    def changed(self, optimizer: Optimizer) -> bool:
        """Whether a weight or a number of its state is another one than before the step, bit for bit."""
        before = self._before.pop(id(optimizer), [])
        now = _all(optimizer)
        return len(now) != len(before) or not all(_same(t, old) for (t, old) in before)


def _all(optimizer: Optimizer) -> list[Tensor]:
    return [*parameters(optimizer), *state_tensors(optimizer)]


def _same(a: Tensor, b: Tensor) -> bool:
    a = a.detach()
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
