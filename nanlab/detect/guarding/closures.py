"""A step with a closure (LBFGS): the weights move while it is evaluated, so it is watched and, if need be, undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from torch import Tensor, optim
from torch.optim import Optimizer

from nanlab.detect.state.checkpoint import Checkpoint

EVALUATE_ONCE = (optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad, optim.Adadelta, optim.Adamax, optim.ASGD,
                 optim.NAdam, optim.RAdam, optim.RMSprop, optim.Rprop, optim.SparseAdam, optim.Adafactor)  # fmt: skip


class ClosureStep:
    """Stands in for the closure of one step. The first evaluation is at the weights as they are, and `judge` says
    whether the step may go on from it; later ones probe, and a probe may overflow without harm: they run inside
    `passing`. Weights and state from before the step are kept in `before`, where the optimizer may evaluate more than
    once; the others move only after their evaluation, and do not move without gradients."""

    def __init__(
        self,
        closure: Callable[[], object],
        params: Sequence[Tensor],
        optimizer: Optimizer,
        judge: Callable[[], bool],
        passing: Callable[[], AbstractContextManager],
    ) -> None:
        self.before = None if isinstance(optimizer, EVALUATE_ONCE) else Checkpoint(params, [optimizer])
        self._closure, self._params, self._judge, self._passing = closure, params, judge, passing
        self._evaluated = False
        self.__name__ = getattr(closure, "__name__", "closure")

    def __call__(self) -> object:
        if self._evaluated:
            with self._passing():
                return self._closure()
        self._evaluated = True
        loss = self._closure()
        if not self._judge():
            for p in self._params:  # no gradient: the optimizer has arrived, as far as it can see
                p.grad = None
        return loss
