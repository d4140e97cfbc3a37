"""Explains a step that spoilt the weights: the optimizer's arithmetic once more, on copies of the elements at fault.

The weights before that step are gone, and a guard that kept them would hold a second copy of the model. What is left,
the gradients and the optimizer's state, is nearly always enough to make the same non-finite value again.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab import suspects
from nanlab.detect.guarding.failure import Failure, describe
from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.report import Report
from nanlab.detect.state.training import TrainingState, state_tensors
from nanlab.detect.state.values import bad_mask, count
from nanlab.detect.trace.labels import user_frame
from nanlab.detect.trace.tracer import Tracer

SPOILT = "The weights are spoilt: this step was made, and those before it are gone."


def postmortem(failure: Failure, model: nn.Module | None, optimizers: Sequence[Optimizer]) -> Report:
    """The report on weights or optimizer state that a step has just made non-finite. Leaves the training state
    alone."""
    report = _again(failure) or Report("non-finite", suspect="lr_too_high", lesson=suspects.get("lr_too_high").lesson)
    frame, _ = user_frame(sys._getframe(1))
    report.step, report.where, report.sink = failure.step, failure.where, failure.where
    if frame is not None and report.file is None:  # an optimizer of the program's own has a line of its own
        report.file, report.line = frame.f_code.co_filename, frame.f_lineno
    report.notes = [SPOILT] if failure.where == "weights" else [f"The {failure.where.replace('_', ' ')} is spoilt."]
    if failure.tensors:
        _name(report, failure.tensors[0], TrainingState(model, optimizers))
    return report


def _name(report: Report, t: Tensor, run: TrainingState) -> None:
    """Which tensor it is, and which of its elements."""
    _, name = run.name(t)
    counts, module = describe(report, name, t)
    report.module = module or report.module
    report.notes.append(f"{name or 'a tensor'}: {counts}, first at {list(counts.element)}.")


def _again(failure: Failure) -> Report | None:
    """The optimizer's step under the tracer, on copies; None where it cannot be made or comes out finite."""
    optimizer = failure.optimizer
    if optimizer is None:
        return None
    try:
        twin, params = _twin(optimizer)
        with Tracer(None, twin) as tracer:
            twin.step()
        bad = [p.detach() for p in params] if failure.where == "weights" else state_tensors(twin)
        return explain(tracer, failure.where, bad, step=failure.step) if any(count(t) for t in bad) else None
    except Exception:  # an optimizer that a copy cannot stand in for; the report then says what is known without it
        return None


def _twin(optimizer: Optimizer) -> tuple[Optimizer, list[nn.Parameter]]:
    """A copy of `optimizer` over copies of the parameters at fault, what is not finite in them set to zero and their
    step count set back by one."""
    twin = object.__new__(type(optimizer))
    twin.__dict__.update(optimizer.__dict__)
    twin.__dict__.pop("step", None)  # a scheduler's wrapper is bound to the original
    twin._optimizer_step_pre_hooks, twin._optimizer_step_post_hooks = OrderedDict(), OrderedDict()
    twin.state, twin.param_groups, copies = defaultdict(dict), [], []
    for group in optimizer.param_groups:
        chosen = []
        for p in group["params"]:
            state = optimizer.state.get(p, {})
            held = [p, *(v for v in state.values() if isinstance(v, Tensor))]
            if p.grad is None or not any(count(t) for t in held):
                continue
            made = nn.Parameter(_finite(p.detach()))
            made.grad = p.grad.detach().clone()
            twin.state[made] = {key: _before(key, value) for key, value in state.items()}
            chosen.append(made)
        copies += chosen
        twin.param_groups.append({**group, "params": chosen})
    return twin, copies


def _before(key: str, value: Any) -> object:
    if key == "step":
        return value - 1
    return _finite(value) if isinstance(value, Tensor) and value.is_floating_point() else value


def _finite(t: Tensor) -> Tensor:
    return torch.where(bad_mask(t), torch.zeros_like(t), t)
