"""One training step under watch, stopped at the moment its loss, gradients or weights are known to be bad."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.report import Report
from nanlab.detect.state import screen, training
from nanlab.detect.state.training import Optimizers, TrainingState, leaves_of
from nanlab.detect.state.values import is_finite
from nanlab.detect.trace.quiet import aside, harmless
from nanlab.detect.trace.tracer import Tracer

WRITTEN = ("inf written", "nan written")  # values that a buffer is meant to hold
SKIPPED = "The loss scaler skipped the step by itself, as it does now and then while its scale settles."


class Stop(BaseException):
    """Ends a step at the moment its loss or gradients are known to be bad; not an Exception, so that no ``except
    Exception`` of the program swallows it."""

    def __init__(self, sink: str, bad: list[Tensor]) -> None:
        super().__init__(sink)
        self.sink, self.bad = sink, bad


def search(step_fn: Callable[[], object], model: nn.Module | None = None, optimizer: Optimizers = None,
           batch: object = None, step: int = 0, known: list | None = None) -> Report:  # fmt: skip
    """Runs ``step_fn()`` once, its operations watched, and reports what the first bad value came from; see
    `nanlab.hunt`, which is this and a confirmation. With `known`, LookupError before any other optimizer steps, whose
    state could not be put back. What `step_fn` raises passes through."""
    tracer = Tracer(model, optimizer, batch)
    tracer.readers.wait_for([p for p in tracer.sources.parameters() if not is_finite(p)])
    try:
        with eager(), tracer:
            follow(step_fn, tracer, known)
    except Stop as stop:
        report = explain(tracer, stop.sink, stop.bad, step=step)
        if stop.sink == "buffer" and report.form in WRITTEN:
            return Report("finite", step=step)
        if tracer.unscaled and not tracer.program.step:
            report.notes.append(SKIPPED)
        return report
    return Report("finite", step=step)


def unwatched(step_fn: Callable[[], object], sources: TrainingState, known: list | None = None) -> None:
    """Runs ``step_fn()`` without looking at its operations; raises `Stop` where `search` would have stopped."""
    tracer = Tracer(sources.model, sources.optimizers, sources.batch, operations=False)
    with eager(), tracer:
        follow(step_fn, tracer, known)


def follow(step_fn: Callable[[], object], tracer: Tracer, known: list | None = None) -> None:
    """Runs ``step_fn()`` under an open tracer; raises `Stop` as soon as loss, gradients or weights are bad. With
    `known`, no other optimizer may step."""
    watched = []  # optimizer steps that could have made a bad value

    def before(optimizer: Optimizer) -> bool:
        if known is not None and not any(optimizer is one for one in known):
            raise LookupError("an optimizer that was not given is about to step")
        unwatched = _before_optimizer(tracer, optimizer)
        watched.append(not unwatched)
        return unwatched

    tracer.on_backward = lambda losses: _check("loss", losses)
    tracer.on_optimizer = before
    with aside():
        healthy = {name for kind, name, t in tracer.sources.everything() if kind == "buffer" and is_finite(t)}
    loss = step_fn()
    if isinstance(loss, Tensor):
        _check("loss", [loss])
        if not tracer.losses and loss.requires_grad:
            loss.sum().backward()
    with aside():
        if not tracer.program.step:
            _check("gradient", gradients(tracer))
        _check("gradient", training.gradients(leaves_of(tracer.losses)))
        _after_step(tracer, any(watched))
        _check("buffer", [t for kind, name, t in tracer.sources.everything() if kind == "buffer" and name in healthy])


def _after_step(tracer: Tracer, watched: bool) -> None:
    """Looks at the weights, and at the optimizer state before them where it can be at fault."""
    params = [p for p in tracer.sources.parameters() if p.requires_grad]  # a frozen one may be a mask of −inf
    if watched or not all(map(is_finite, params)):
        _check("optimizer_state", [t for one in tracer.sources.optimizers for t in training.state_tensors(one)])
        _check("weights", params)


def _before_optimizer(tracer: Tracer, optimizer: Optimizer) -> bool:
    """Looks at the gradients, and has the optimizer's arithmetic watched only where that could make a bad value of
    them. Returns whether it cannot."""
    with aside():
        size = screen.norm(gradients(tracer))
        if not math.isfinite(size):
            _check("gradient", gradients(tracer))
        return harmless(optimizer, size)


def gradients(tracer: Tracer) -> list[Tensor]:
    """Every gradient that the tracer's model and optimizers hold."""
    return training.gradients(tracer.sources.parameters())


def _check(sink: str, tensors: list[Tensor]) -> None:
    with aside():
        bad = [t for t in tensors if not is_finite(t)]
    if bad:
        raise Stop(sink, bad)


@contextmanager
def eager() -> Iterator[None]:
    """Makes compiled models run as plain ones; does nothing where the compiler was never loaded."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield
