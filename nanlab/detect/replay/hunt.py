"""One training step under the per-operation search."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from nanlab.detect.origin.report import Report
from nanlab.detect.replay import confirm as confirmation
from nanlab.detect.replay.step import search
from nanlab.detect.state.checkpoint import keep
from nanlab.detect.state.training import Optimizers


def hunt(step_fn: Callable[[], object], model: nn.Module | None = None, optimizer: Optimizers = None,
         batch: object = None, *, step: int = 0, confirm: bool = False) -> Report:  # fmt: skip
    """Runs ``step_fn()`` once and reports the first non-finite value that its loss, its gradients or its weights
    depend on.

    `step_fn` may call backward and the optimizer itself, or return a loss, on which backward is then called. It is
    stopped before the optimizer steps when the loss or the gradients are bad; what it raises itself passes through.
    A buffer that turned bad in the step is looked at last. `batch` (any nesting of tensors) lets the report name an
    input. With `confirm`, a step found non-finite is run again under the interventions of `replay.confirm`,
    from a copy of weights and state taken before. Costs about 1.2 of the step where its operations are large, more
    where they are tiny. It cannot see what happens outside torch.
    """
    if not confirm:
        return search(step_fn, model, optimizer, batch, step)
    if model is None:
        raise ValueError(confirmation.NEEDS)
    restore = keep(model, optimizer, batch)
    report = search(step_fn, model, optimizer, batch, step)
    return confirmation.confirm(report, step_fn, model, optimizer, batch, restore)
