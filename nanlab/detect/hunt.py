"""One training step under the per-operation search. Taught in lesson 09_step_12001."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from nanlab.detect.explain import explain
from nanlab.detect.report import Report
from nanlab.detect.sources import Sources
from nanlab.detect.tracer import Tracer
from nanlab.detect.values import is_finite

WRITTEN = ("inf written", "nan written")  # values that a buffer is meant to hold


class Stop(BaseException):
    """Ends a step at the moment its loss or gradients are known to be bad; not an Exception, so that no ``except
    Exception`` of the program swallows it."""

    def __init__(self, sink: str, bad: list[Tensor]) -> None:
        super().__init__(sink)
        self.sink, self.bad = sink, bad


def hunt(step_fn: Callable[[], object], model: nn.Module | None = None, optimizer: object = None, batch: object = None,
         *, step: int = 0, confirm: bool = False) -> Report:  # fmt: skip
    """Runs ``step_fn()`` once and reports the first non-finite value that its loss, its gradients or its weights
    depend on.

    `step_fn` may call backward and the optimizer itself, or return a loss, on which backward is then called. It is
    stopped before the optimizer steps when the loss or the gradients are bad; what it raises itself passes through.
    A buffer that turned bad in the step is looked at last. `batch` (any nesting of tensors) lets the report name an
    input. With `confirm`, a step found non-finite is run again under the interventions of `nanlab.detect.confirm`,
    from a copy of weights and state taken before. Costs about 1.2 of the step where its operations are large, more
    where they are tiny. It cannot see what happens outside torch.
    """
    from nanlab.detect import confirm as confirmation
    from nanlab.detect.putback import keep

    restore = keep(model, optimizer, batch) if confirm else None
    tracer = Tracer(model, optimizer, batch)
    tracer.watch_readers([t for kind, _, t in tracer.sources.everything() if kind == "parameter" and not is_finite(t)])
    try:
        with eager(), tracer:
            follow(step_fn, tracer)
    except Stop as stop:
        report = explain(tracer, stop.sink, stop.bad, step=step)
        if stop.sink == "buffer" and report.form in WRITTEN:
            return Report("finite", step=step)
        return confirmation.confirm(report, step_fn, model, optimizer, batch, restore) if restore else report
    return Report("finite", step=step)


def watched_step(step_fn: Callable[[], object], sources: Sources) -> None:
    """Runs ``step_fn()`` without looking at its operations; raises `Stop` where the hunt would have stopped."""
    tracer = Tracer(operations=False)
    tracer.sources = sources
    with tracer:
        follow(step_fn, tracer)


def follow(step_fn: Callable[[], object], tracer: Tracer) -> None:
    """Runs ``step_fn()`` under an open tracer; raises `Stop` as soon as loss, gradients or weights are bad."""
    tracer.on_backward = lambda losses: _check("loss", losses)
    tracer.on_optimizer = lambda optimizer: _check("gradient", gradients(tracer))
    healthy = {name for kind, name, t in tracer.sources.everything() if kind == "buffer" and is_finite(t)}
    loss = step_fn()
    if isinstance(loss, Tensor):
        _check("loss", [loss])
        if not tracer.losses and loss.requires_grad:
            loss.sum().backward()
    if not tracer.step:
        _check("gradient", gradients(tracer))
    for kind, sink in (("parameter", "weights"), ("state", "optimizer_state")):
        _check(sink, [t for k, _, t in tracer.sources.everything() if k == kind])
    _check("buffer", [t for kind, name, t in tracer.sources.everything() if kind == "buffer" and name in healthy])


@contextmanager
def eager() -> Iterator[None]:
    """Makes compiled models run as plain ones; does nothing where the compiler was never loaded."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def gradients(tracer: Tracer) -> list[Tensor]:
    """Every gradient that the tracer's model and optimizers hold."""
    return [t for kind, _, t in tracer.sources.everything() if kind == "grad"]


def _check(sink: str, tensors: list[Tensor]) -> None:
    bad = [t for t in tensors if not is_finite(t)]
    if bad:
        raise Stop(sink, bad)
