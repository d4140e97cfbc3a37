"""Shows that an origin was the cause: the interventions that make its step finite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from nanlab.detect.origin.report import Report, Target
from nanlab.detect.replay import samples
from nanlab.detect.replay.interventions import Experiment, double, zeroed
from nanlab.detect.replay.patch import PatchCalls, patches
from nanlab.detect.state.checkpoint import keep
from nanlab.detect.state.training import Optimizers

MOST_SAMPLES = 32  # replays spent on leaving out one sample after the other
MOST_LINES = 4  # origins that are mended together
NEEDS = "a confirmation needs the model (and its optimizers): the step runs again, and everything is put back"
NARROWED = {"0/0": "0/0 (underflow)"}


def confirm(report: Report, step_fn: Callable[[], object], model: nn.Module | None = None, optimizer: Optimizers = None,
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
    put_back = restore or keep(model, optimizer, batch)

    @contextmanager
    def begin() -> Iterator[tuple[()]]:
        put_back()
        yield ()

    trial = Experiment(lambda batch: step_fn(), model, optimizer, batch, begin, in_place=True)
    try:
        report.confirmed_by = list(_confirmations(report, trial))
    finally:
        put_back()
    return report


def _confirmations(report: Report, trial: Experiment) -> Iterator[str]:
    if _patched(report, trial):
        yield "operand patched"
    if (sample := _guilty_sample(report, trial)) is not None:
        yield f"sample {sample} left out"
    twin = trial.finite(double(trial.sources))
    if twin:
        report.form = NARROWED.get(report.form or "", report.form)
        yield "float64"
    elif twin is False:
        report.notes.append("In float64 the step is not finite either: no matter of range or precision.")


def _patched(report: Report, trial: Experiment) -> bool:
    """Whether the step is finite once the operand before the origin is mended."""
    if report.form in ("nan_in", "inf_in") and trial.finite(zeroed(trial.sources)):
        return True
    if report.target is None:
        return False
    return any(trial.finite(mode) and mode.count for mode in patches(report.target)) or _together(report, trial)


def _together(report: Report, trial: Experiment) -> bool:
    """Whether the step is finite once every origin is mended, where mending the first brings another to light."""
    targets: list[Target] = [report.target] if report.target else []
    while len(targets) <= MOST_LINES:
        try:
            found = trial.run(*(PatchCalls(t, whole=False) for t in targets))
        except Exception:  # a mended step that raises shows no further origin
            break
        if found.verdict == "finite":
            break
        if found.target is None or found.target in targets:
            return False
        targets.append(found.target)
    modes = [PatchCalls(t, whole=False) for t in targets]
    if len(targets) < 2 or not trial.finite(*modes) or not all(mode.count for mode in modes):
        return False
    report.notes.append(f"There are {len(targets)} origins: {', '.join(str(t.place) for t in targets)}.")
    return True


def _guilty_sample(report: Report, trial: Experiment) -> int | None:
    """The sample without which the step is finite, or None. The one that the origin's element points at is tried
    first."""
    size = samples.size(trial.batch)
    if size < 2:
        return None
    first = [i for i in (report.element or [])[:1] if i < size and report.shape and report.shape[0] == size]
    order = first + [i for i in range(size) if i not in first]
    left_out = (i for i in order[:MOST_SAMPLES] if trial.finite(batch=samples.without(trial.batch, [i])))
    return next(left_out, None)
