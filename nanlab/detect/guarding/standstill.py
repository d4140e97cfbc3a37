"""Lets an optimizer's step pass without effect: its gradients are hidden from it, which every optimizer reads as
rest."""

from __future__ import annotations

from torch import Tensor
from torch.optim import Optimizer

from nanlab.detect.guarding.closures import ClosureStep


class StandsStill:
    """The part of a sentry that keeps optimizers from moving. A hook cannot cancel a step, and an exception would end
    the program's loop; a step without gradients changes neither weights nor state."""

    hidden: list[tuple[Tensor, Tensor]]

    def hide_gradients(self, optimizer: Optimizer) -> None:
        """Takes the gradients away, which every optimizer reads as nothing to do, until `stood_still`."""
        for p in self.params(optimizer):
            if p.grad is not None:
                self.hidden.append((p, p.grad))
                p.grad = None

    def stood_still(self, optimizer: Optimizer, closure: ClosureStep | None) -> None:
        """After the step: the gradients are back; a step with a closure, which made its own, is undone."""
        for p, grad in self.hidden:
            p.grad = grad
        self.hidden.clear()
        if closure is not None:
            closure.put_back()
        if self.hold.get(id(optimizer)):
            self.hold[id(optimizer)] -= 1
        elif self.replaying:
            self.stepped[id(optimizer)] = self.stepped.get(id(optimizer), 0) + 1
