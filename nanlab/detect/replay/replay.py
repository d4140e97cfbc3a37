"""Runs a captured step again and says what came of it: reproduced, not reproduced, or only when compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

import torch
from torch import Tensor

from nanlab.detect import patching
from nanlab.detect.origin.report import Report
from nanlab.detect.replay.interventions import Experiment
from nanlab.detect.state.printable import printable
from nanlab.detect.state.training import gradients
from nanlab.detect.state.values import is_finite

REPRODUCED, NOT_REPRODUCED, COMPILED = "reproduced", "not reproduced", "only when compiled"


@dataclass
class Replay:
    """What a replay gave. `verdict` is ``"reproduced"``, ``"not reproduced"`` or ``"only when compiled"``; `report` is
    the hunt's; `reasons` names what was not captured and may explain a difference."""

    verdict: str
    report: Report
    reasons: list[str] = field(default_factory=list)

    @property
    def reproduced(self) -> bool:
        return self.verdict == REPRODUCED

    def __str__(self) -> str:
        body = [str(self.report)] if self.verdict == REPRODUCED else [f"  - {reason}" for reason in self.reasons]
        return printable("\n".join([self.verdict, *body]))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def replay(experiment: Experiment, lacks: Sequence[str] = ()) -> Replay:
    """One run of the experiment under the hunt, compiled code run eagerly; one plain run more where compiled code is
    loaded and the eager step was finite. `lacks` are sentences on what may explain that a step stays finite."""
    report = experiment.run()
    missing = list(experiment.missing)
    if report.verdict != "finite":
        return Replay(REPRODUCED, report, missing)
    if "torch._dynamo" in sys.modules and (bad := _goes_bad(experiment)):  # something may have been compiled
        report.verdict = "only-when-compiled"
        return Replay(COMPILED, report, [f"run eagerly the step is finite; compiled, its {bad} is not"])
    return Replay(NOT_REPRODUCED, report, [*missing, *lacks])


def accumulate(step_fn: Callable[[object], object], batches: Sequence[object]) -> object:
    """The micro-batches of one step in turn, with their backward, which is called here where `step_fn` only returns
    the loss; returns what it made of the last one."""
    if len(batches) == 1:
        return step_fn(batches[0])
    return [_with_backward(step_fn, batch)[0] for batch in batches][-1]


def _with_backward(step_fn: Callable[[object], object], batch: object) -> tuple[object, bool]:
    """What ``step_fn(batch)`` returns, and whether its losses were finite; backward is called where it did not."""
    finite: list[bool] = []
    end = patching.on_losses(lambda losses: finite.append(all(map(is_finite, losses))))
    try:
        loss = step_fn(batch)
        called = bool(finite)
        if isinstance(loss, Tensor):
            finite.append(is_finite(loss))
            if loss.requires_grad and not called:
                loss.sum().backward()
    finally:
        end()
    return loss, all(finite)


def _goes_bad(experiment: Experiment) -> str | None:
    """Runs the step as it is, without the hunt; which of loss, gradient and weights is not finite then, or None."""
    with experiment.begin():
        params = experiment.sources.parameters()
        if not _with_backward(experiment.step_fn, experiment.batch)[1]:
            return "loss"
        if not all(map(is_finite, gradients(params))):
            return "gradient"
        return None if all(map(is_finite, params)) else "weights"


def compiled_code() -> bool:
    """Whether this process has compiled anything with ``torch.compile``."""
    return "torch._dynamo" in sys.modules and bool(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def why_not(not_captured: Sequence[str] = (), changed: Sequence[str] = ()) -> list[str]:
    """What may explain that a replay came out finite: what was not captured, what changed since, what cannot be."""
    reasons = [f"not captured: {what}" for what in not_captured] + [f"changed: {what}" for what in changed]
    reasons.append("not captured: generators that the program made itself (torch.Generator, numpy.random.default_rng), "
                   "the clock, threads, files and the network")  # fmt: skip
    if torch.cuda.is_initialized() and not torch.are_deterministic_algorithms_enabled():
        reasons.append("kernels that add in no fixed order (torch.use_deterministic_algorithms(True) rules these out)")
    return reasons
