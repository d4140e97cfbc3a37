"""Runs a scene's step again and says what came of it: reproduced, not reproduced, or only when compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab.detect.origin.report import Report
from nanlab.detect.patching import Listener, listening
from nanlab.detect.replay.hunt import hunt
from nanlab.detect.replay.scene import Scene, named_weights
from nanlab.detect.state.screen import gradients
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
        return "\n".join([self.verdict, *body])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def replay(
    scene: Scene,
    step_fn: Callable[[object], object],
    model: nn.Module | None = None,
    optimizer: Optimizer | Sequence[Optimizer] | None = None,
) -> Replay:
    """Runs ``step_fn(batch)`` for the scene's batch (each of its micro-batches in turn) from the scene's weights,
    buffers, optimizer state and random state, under the hunt, compiled code run eagerly.

    `step_fn` computes the loss and either calls backward itself or returns the loss. `model` and `optimizer` are filled
    from the scene and put back as they were when the replay ends; so are gradients and the random state. What `step_fn`
    raises passes through. Cost: one step under the hunt, and one plain step more where compiled code is loaded and the
    eager step was finite.
    """
    with staged(scene, model, optimizer) as missing:
        report = hunt(lambda: _run(scene, step_fn), model, optimizer, scene.batch, step=scene.step)
    if report.verdict != "finite":
        return Replay(REPRODUCED, report, missing)
    if "torch._dynamo" in sys.modules:  # something may have been compiled
        with staged(scene, model, optimizer):
            bad = goes_bad(lambda: _run(scene, step_fn), model, optimizer)
        if bad:
            report.verdict = "only-when-compiled"
            return Replay(COMPILED, report, [f"run eagerly the step is finite; compiled, its {bad} is not"])
    return Replay(NOT_REPRODUCED, report, missing + why_not(scene))


def _run(scene: Scene, step_fn: Callable[[object], object]) -> object:
    """The micro-batches before the last one with their backward, called here where `step_fn` only returns the loss."""
    for batch in scene.batches[:-1]:
        _accumulate(step_fn, batch)
    return _accumulate(step_fn, scene.batch) if len(scene.batches) > 1 else step_fn(scene.batch)


def _accumulate(step_fn: Callable[[object], object], batch: object) -> object:
    heard = _Losses()
    with listening(heard):
        loss = step_fn(batch)
        if isinstance(loss, Tensor) and loss.requires_grad and not heard.calls:
            loss.sum().backward()
    return loss


@contextmanager
def staged(
    scene: Scene, model: nn.Module | None, optimizer: Optimizer | Sequence[Optimizer] | None
) -> Iterator[list[str]]:
    """Sets the model, its optimizers and the random state to the scene's for the length of a block, then puts all of it
    back, gradients included. Holds a second copy of the weights and the optimizer state meanwhile."""
    params = list(named_weights(model, optimizer).values())
    before = Scene.capture(model, optimizer, None)
    held = [p.grad for p in params]
    try:
        missing = scene.put_back(model, optimizer)
        for p in params:
            p.grad = None
        yield missing
    finally:
        before.put_back(model, optimizer)
        for p, grad in zip(params, held, strict=True):
            p.grad = grad


def compiled_code() -> bool:
    """Whether this process has compiled anything with ``torch.compile``."""
    return "torch._dynamo" in sys.modules and bool(torch._dynamo.utils.counters["stats"]["unique_graphs"])


class _Losses(Listener):
    def __init__(self) -> None:
        self.bad, self.calls = False, 0

    def before_backward(self, losses: Sequence[Tensor]) -> None:
        self.calls += 1
        self.bad = self.bad or not all(is_finite(loss) for loss in losses)


def goes_bad(step_fn: Callable[[], object], model: nn.Module | None, optimizer: object) -> str | None:
    """Runs the step as it is, without the hunt; which of loss, gradient and weights is not finite then, or None."""
    heard, params = _Losses(), list(named_weights(model, optimizer).values())
    with listening(heard):
        loss = step_fn()
        if isinstance(loss, Tensor):
            heard.bad = heard.bad or not is_finite(loss)
            if loss.requires_grad and not heard.calls:
                loss.sum().backward()
    if heard.bad:
        return "loss"
    if not all(is_finite(g) for g in gradients(params)):
        return "gradient"
    return None if all(is_finite(p) for p in params) else "weights"


def why_not(scene: Scene | None) -> list[str]:
    """What may explain that a replay came out finite: what the scene lacks, what changed, what cannot be captured."""
    reasons = [f"not captured: {what}" for what in scene.not_captured] if scene else []
    reasons += [f"changed: {what}" for what in scene.changed_since()] if scene else []
    reasons.append("not captured: generators that the program made itself (torch.Generator, numpy.random.default_rng), "
                   "the clock, threads, files and the network")  # fmt: skip
    if torch.cuda.is_initialized() and not torch.are_deterministic_algorithms_enabled():
        reasons.append("kernels that add in no fixed order (torch.use_deterministic_algorithms(True) rules these out)")
    return reasons
