"""The guard for code that has no loader to wrap: a trainer's ``fit``, a step called from elsewhere.

with watch(model, optimizer):
    trainer.fit()
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab.detect import patching
from nanlab.detect.guarding.failure import Failure
from nanlab.detect.guarding.firstlook import first_look
from nanlab.detect.guarding.history import history_of
from nanlab.detect.guarding.postmortem import postmortem
from nanlab.detect.guarding.rerun import eager_tracer
from nanlab.detect.guarding.watcher import Pass, StepWatcher
from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.report import NonFiniteError, Report
from nanlab.detect.replay.scene import Scene
from nanlab.detect.state.buffers import Buffers
from nanlab.detect.state.nesting import map_tensors, tensors
from nanlab.detect.state.randomness import RandomState, Recorder
from nanlab.detect.state.training import as_list
from nanlab.detect.state.values import is_finite

CALLS = 8  # forward calls since the last step that are remembered
BEYOND = (
    "The model's own forward pass is finite on this input: the value is made after it, in the loss or in backward. "
)
ELSEWHERE = "What runs the whole step again sees that line: "
OWN_LOOP = "guard(loader, model, optimizer), hunt(step_fn), or nanlab hunt SCRIPT."
FRAMEWORKS = {  # module -> what its users can do
    "transformers.trainer": "Trainer(callbacks=[nanlab.integrations.TransformersGuard()]), or nanlab hunt SCRIPT.",
    "lightning.pytorch.trainer": "Trainer(callbacks=[nanlab.integrations.LightningGuard()]), or nanlab hunt SCRIPT.",
}


@dataclass(frozen=True)
class Call:
    """A forward call of the model: its arguments, detached but not copied, and the random state before it."""

    args: tuple
    kwargs: dict
    random: RandomState


class watch:
    """Context manager that looks at loss, gradients and weights as `guard` does, and raises `NonFiniteError` where the
    program stands: in backward, before the optimizer moves, or in ``optimizer.step`` where the optimizer made the
    value.

    It cannot run the program's step again. It runs the model's forward calls of that step again, under the hunt, with
    their inputs, random state and buffers; what goes wrong inside the model gets its line, what goes wrong after it
    only its place. Weights and optimizer state are then those before the step, gradients are None. On leaving the
    block, or on an exception in it, everything is detached. Entering it looks at weights and optimizer state once.

    Memory: the inputs of the model's last calls, until the optimizer steps. Cost: as the guard's.
    """

    def __init__(self, model: nn.Module, optimizer: Optimizer | Sequence[Optimizer] | None = None) -> None:
        self.model, self.optimizers = model, as_list(optimizer)
        self.history = history_of(model, self.optimizers)
        self._watcher = StepWatcher(self.optimizers, self.history, self._failed, model.parameters,
                                    early=not self.optimizers, on_end=self._calls_done)  # fmt: skip
        self._recorder, self._buffers = Recorder(), Buffers(model)
        self._calls: deque[Call] = deque(maxlen=CALLS)
        self._unhook: Callable[[], None] = lambda: None

    @property
    def trajectory(self):
        """The last 64 steps."""
        return self.history.trajectory

    def __enter__(self) -> watch:
        if not self.history.looked:
            self.history.looked = True
            bad = first_look(self.model, self.optimizers)
            if bad is not None:
                raise NonFiniteError(bad.report())
        self._unhook = patching.on_forward(self.model, self._before_forward)
        self._watcher.now = Pass()
        self._watcher.attach()
        return self

    def __exit__(self, *exc: object) -> None:
        self._detach()

    def _detach(self) -> None:
        self._watcher.detach()
        self._calls.clear()
        self._unhook()

    def _before_forward(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        if not self._calls:
            self._buffers.take()
        held: Any = map_tensors([args, kwargs], lambda t: t.detach() if t.grad_fn is not None else t)
        self._calls.append(Call(held[0], held[1], self._recorder.take()))

    def _calls_done(self) -> None:
        self._calls.clear()
        self._watcher.now = Pass()
        if not self.optimizers:
            self.history.batches += 1

    def _failed(self, failure: Failure) -> None:
        spoilt = failure.spoilt
        report = postmortem(failure, self.model, self.optimizers) if spoilt else self._replay(failure)
        calls = list(self._calls)
        self._detach()
        self._take_back(calls)
        report.notes += failure.notes
        self.history.tell(report)
        random = calls[0].random if calls else None
        batch = [call.args for call in calls]
        scene = Scene.capture(
            self.model, self.optimizers, batch, step=failure.step, random=random, trajectory=self.trajectory
        )
        scene.not_captured.append(
            "the step around the model: what the batch holds is the arguments of its forward calls"
        )
        raise NonFiniteError(report, scene)

    def _take_back(self, calls: list[Call]) -> None:
        for p in self._watcher.every_param():
            p.grad = None
        if calls:
            self._buffers.put_back()
            calls[0].random.restore()

    def _replay(self, failure: Failure) -> Report:
        """The forward calls of the step once more; the report on the first that is not finite."""
        if self._calls:
            self._buffers.put_back()
        for call in list(self._calls):
            call.random.restore()
            self._unhook()
            with eager_tracer(self.model, self.optimizers, [call.args, call.kwargs]) as tracer:
                output = self.model(*call.args, **call.kwargs)
            self._unhook = patching.on_forward(self.model, self._before_forward)
            bad = [t for t in tensors(_plain(output)) if not is_finite(t)]
            if bad:
                return explain(tracer, failure.where, bad, step=failure.step)
        return Report(
            "non-finite",
            step=failure.step,
            where=failure.where,
            sink=failure.where,
            notes=[BEYOND + ELSEWHERE + _advice()],
        )


def _advice() -> str:
    """What would see the line, for the loop that calls."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        for module, advice in FRAMEWORKS.items():
            if name.startswith(module):
                return advice
        frame = frame.f_back
    return OWN_LOOP


def _plain(output: object) -> object:
    return list(output.values()) if hasattr(output, "values") and not isinstance(output, Tensor) else output
