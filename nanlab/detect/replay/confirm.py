"""Interventions that make a step finite again, and so show that the origin was the cause. Taught in 09_step_12001."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.report import Report
from nanlab.detect.replay import twins
from nanlab.detect.replay.hunt import Stop, eager, follow, watched_step
from nanlab.detect.replay.patch import PatchCalls, PatchOperations, Target
from nanlab.detect.state.putback import keep
from nanlab.detect.state.sources import Sources
from nanlab.detect.state.values import is_finite, is_numeric
from nanlab.detect.trace.tracer import Tracer

MOST_SAMPLES = 32  # replays spent on leaving out one sample after the other
MOST_LINES = 4  # origins that are mended together
NEEDS = "a confirmation needs the model (and its optimizers): the step runs again, and everything is put back"
NARROWED = {"0/0": "0/0 (underflow)"}


@dataclass
class Trial:
    """How to run the step once more: `step_fn`, and what puts everything back before it runs."""

    step_fn: Callable[[], object]
    sources: Sources
    restore: Callable[[], None]

    def finite(self, *contexts) -> bool | None:
        """Whether the step is finite inside `contexts`; None when it raises there."""
        self.restore()
        try:
            with ExitStack() as stack:
                stack.enter_context(eager())
                for context in contexts:
                    stack.enter_context(context)
                watched_step(self.step_fn, self.sources)
            return True
        except Stop:
            return False
        except Exception:
            return None

    def hunted(self, *contexts) -> Report | None:
        """What a hunt finds inside `contexts`; None when the step raises there."""
        self.restore()
        try:
            with ExitStack() as stack:
                for context in contexts:
                    stack.enter_context(context)
                stack.enter_context(eager())
                tracer = stack.enter_context(Tracer(self.sources.model, self.sources.optimizers, self.sources.batch))
                follow(self.step_fn, tracer, self.sources.optimizers)
            return Report("finite")
        except Stop as stop:
            return explain(tracer, stop.sink, stop.bad)
        except Exception:
            return None


def confirm(report: Report, step_fn: Callable[[], object], model: nn.Module | None = None, optimizer: object = None,
            batch: object = None, restore: Callable[[], None] | None = None) -> Report:  # fmt: skip
    """Replays ``step_fn()`` under interventions and lists in ``report.confirmed_by`` those that made it finite:

    ``"operand patched"``: the troublesome elements of the origin's operands were exchanged for harmless ones;
    ``"sample i left out"``: the batch without one sample; ``"float64"``: the same step in double precision.

    `restore` puts weights, buffers, optimizer state, random state and batch back to before the step; without it, they
    are taken as they are now. `batch` must be what `step_fn` reads, since samples are left out in place. Returns the
    same report, everything restored. Cost: up to 36 plain steps, and copies of weights and batch. An unconfirmed
    origin is not refuted. Raises ValueError without both `model` and `restore`. An optimizer that is not given never
    steps in a replay, which then confirms nothing.
    """
    if model is None and restore is None:
        raise ValueError(NEEDS)
    if report.verdict != "non-finite":
        return report
    putting_back = restore or keep(model, optimizer, batch)
    trial = Trial(step_fn, Sources(model, optimizer, batch), putting_back)
    try:
        report.confirmed_by = list(_interventions(report, trial))
    finally:
        putting_back()
    return report


def _interventions(report: Report, trial: Trial) -> Iterator[str]:
    if patched(report, trial):
        yield "operand patched"
    if (sample := guilty_sample(report, trial)) is not None:
        yield f"sample {sample} left out"
    twin = trial.finite(twins.wide(trial.sources))
    if twin:
        report.form = NARROWED.get(report.form or "", report.form)
        yield "float64"
    elif twin is False:
        report.notes.append("In float64 the step is not finite either: no matter of range or precision.")


def patched(report: Report, trial: Trial) -> bool:
    """Whether the step is finite once the operand before the origin is mended."""
    if report.form in ("nan_in", "inf_in") and trial.finite(_mended_tensors(trial)):
        return True
    target = report.target
    if not isinstance(target, Target):
        return False
    for mode in (PatchCalls(target, False), PatchOperations(target), PatchCalls(target, True)):
        if trial.finite(mode) and mode.count:
            return True
    return _patched_together(report, trial, target)


def _patched_together(report: Report, trial: Trial, target: Target) -> bool:
    """Whether the step is finite once every origin is mended, where mending the first brings another to light."""
    targets = [target]
    while len(targets) <= MOST_LINES:
        found = trial.hunted(*(PatchCalls(t, False) for t in targets))
        if found is None or found.verdict == "finite":
            break
        if not isinstance(found.target, Target) or found.target in targets:
            return False
        targets.append(found.target)
    modes = [PatchCalls(t, False) for t in targets]
    if len(targets) < 2 or not trial.finite(*modes) or not all(mode.count for mode in modes):
        return False
    report.notes.append(f"There are {len(targets)} origins: {', '.join(str(t.place) for t in targets)}.")
    return True


@contextmanager
def _mended_tensors(trial: Trial) -> Iterator[None]:
    """Zeros in place of what is not finite in weights, optimizer state and batch."""
    for kind, _, t in trial.sources.everything():
        if kind in ("parameter", "state", "batch", "buffer") and is_numeric(t) and not is_finite(t):
            t.data = torch.nan_to_num(t.data, nan=0.0, posinf=0.0, neginf=0.0)
    yield


def guilty_sample(report: Report, trial: Trial) -> int | None:
    """The sample without which the step is finite, or None. The one that the origin's element points at is tried
    first."""
    batch = trial.sources.batch
    samples = twins.rows(batch)
    size = len(samples[0]) if samples else 0
    if size < 2:
        return None
    first = [i for i in (report.element or [])[:1] if i < size and report.shape and report.shape[0] == size]
    order = first + [i for i in range(size) if i not in first]
    return next((i for i in order[:MOST_SAMPLES] if trial.finite(twins.without(batch, i))), None)

