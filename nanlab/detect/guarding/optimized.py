"""One optimizer under watch: what it updates, and how it is kept from moving."""

from __future__ import annotations

import math

from torch import Tensor
from torch.optim import Optimizer

from nanlab.detect.guarding.closures import ClosureStep
from nanlab.detect.state.screen import narrow, tiny
from nanlab.detect.state.training import parameters


class Optimized:
    """What is known of an optimizer with so many parameter `groups`. `calm_lr` is the learning rate at which its
    settings were found calm, `closure` stands in for that of the step being made."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer, self.groups = optimizer, len(optimizer.param_groups)
        self.params = parameters(optimizer)
        self.narrow, self.tiny = narrow(self.params), tiny(self.params)
        self.calm_lr = math.nan
        self.closure: ClosureStep | None = None
        self._hidden: list[tuple[Tensor, Tensor]] = []

    def hide_gradients(self) -> None:
        """Lets the step pass without effect, until `stood_still`. A hook cannot cancel it, and an exception would end
        the program's loop; without gradients, every optimizer finds nothing to do."""
        for p in self.params:
            if p.grad is not None:
                self._hidden.append((p, p.grad))
                p.grad = None

    def stood_still(self) -> None:
        """After the step: the gradients are back; a step with a closure, which made its own, is undone."""
        for p, grad in self._hidden:
            p.grad = grad
        self._hidden.clear()
        closure, self.closure = self.closure, None
        if closure is not None and closure.before is not None:
            closure.before.restore()
