"""Watches every operation of a piece of training: which made a non-finite value, where it stands, what fed it.

Two modes work together. A function mode sees what the user called and from which line; a dispatch mode sees every
operation that runs, also in backward and in the optimizer. Views are skipped and results are screened by a sum, which
is what keeps it near the cost of a plain step.
"""

from __future__ import annotations

from contextlib import ExitStack

from torch import nn

from nanlab.detect.state.training import Optimizers
from nanlab.detect.trace.attach import attach
from nanlab.detect.trace.modes import Functions, Operations, keep_on_in_backward
from nanlab.detect.trace.trace import Trace


class Tracer(Trace):
    """Context manager that records where non-finite values come from while it is open.

    With `model`, module paths and parameters are named by it; `optimizer` names the optimizer's state; `batch` (any
    nesting of tensors) names the inputs. An optimizer's step that cannot make a bad value, by `quiet.harmless`, is not
    looked into. Without `operations` it only follows backward, optimizers and modules, at next to no cost.
    Not reentrant; detaches itself whatever happens inside.
    """

    def __init__(self, model: nn.Module | None = None, optimizer: Optimizers = None, batch: object = None,
                 operations: bool = True) -> None:  # fmt: skip
        super().__init__(model, optimizer, batch)
        self.operations = operations
        self._stack = ExitStack()

    def __enter__(self) -> Tracer:
        with ExitStack() as stack:
            stack.callback(self.program.stopped)
            attach(self, stack, self.operations)
            if self.operations:
                functions = Functions(self)
                stack.callback(keep_on_in_backward(functions, self.program.callers))
                stack.enter_context(functions)
                stack.enter_context(Operations(self))
            stack.callback(self.quiet.end)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()
