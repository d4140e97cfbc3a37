"""Copies of a run's tensors and optimizer state in memory, and their way back; tensors keep their identity."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab.detect.state import randomness
from nanlab.detect.state.training import Optimizers, TrainingState

KEEP = 2  # the newest snapshot may lie inside the explosion; the one before it is `every` steps older


class Checkpoint:
    """A copy of the values of `tensors` and of what `optimizers` hold: state, learning rates and other settings."""

    def __init__(self, tensors: Iterable[Tensor], optimizers: Sequence[Optimizer]) -> None:
        self._tensors = [(t, t.detach().clone()) for t in {id(t): t for t in tensors}.values()]
        self._states = [(one, {p: deepcopy(state) for p, state in one.state.items()}) for one in optimizers]
        self._settings = Settings(optimizers)

    def restore(self) -> None:
        """Puts everything back, as often as it is called."""
        for t, values in self._tensors:
            overwrite(t, values)
        for one, state in self._states:
            one.state.clear()
            one.state.update((p, deepcopy(held)) for p, held in state.items())
        self._settings.restore()


class Settings:
    """The learning rates and other settings of `optimizers`, before a scheduler moves on."""

    def __init__(self, optimizers: Iterable[Optimizer] = ()) -> None:
        self._groups = [(group, _settings(group)) for one in optimizers for group in one.param_groups]

    def restore(self) -> None:
        for group, held in self._groups:
            group.update(_settings(held))


def _settings(group: dict) -> dict:
    return {key: v.clone() if isinstance(v, Tensor) else v for key, v in group.items() if key != "params"}


def overwrite(t: Tensor, values: Tensor) -> None:
    """Gives `t` these values: in its own memory, so that whatever shares it follows, or in new memory where `t` has got
    another shape or dtype, or cannot be written to."""
    try:
        if t.shape == values.shape and t.dtype == values.dtype:
            with torch.no_grad():
                t.copy_(values)
            return
    except RuntimeError:  # an expanded tensor, or one made in inference mode
        pass
    t.data = values.clone()


def keep(model: nn.Module | None, optimizer: Optimizers = None, batch: object = None) -> Callable[[], None]:
    """Copies all that a training step changes: weights, buffers, gradients, optimizer state and settings, random state
    and the batch's tensors; returns what puts them back, as often as it is called. Costs one copy of each in memory."""
    run = TrainingState(model, optimizer, batch)
    tensors = [t for kind, _, t in run.everything() if kind in ("parameter", "buffer", "batch")]
    grads = [(t, None if t.grad is None else t.grad.detach().clone()) for t in tensors]
    checkpoint, random = Checkpoint(tensors, run.optimizers), randomness.now()

    def put_back() -> None:
        checkpoint.restore()
        for t, grad in grads:
            t.grad = None if grad is None else grad.clone()
        random.restore()

    return put_back


class Rollback:
    """A copy of weights, buffers and optimizer state every `every` steps, of which two are kept: the weights just
    before an explosion are finite and already useless. Costs both copies in memory, and copying that often."""

    def __init__(self, model: nn.Module | None, optimizers: Sequence[Optimizer], every: int) -> None:
        if every < 1:
            raise ValueError(f"snapshot_every is {every}; give a number of steps")
        self._run, self.every = TrainingState(model, optimizers), every
        self._taken: deque[tuple[int, Checkpoint]] = deque(maxlen=KEEP)

    def maybe_take(self, step: int) -> None:
        """Takes a copy when `every` steps have passed since the last one."""
        if not self._taken or step - self._taken[-1][0] >= self.every:
            tensors = [*self._run.parameters(), *(b for _, b in self._run.buffers())]
            self._taken.append((step, Checkpoint(tensors, self._run.optimizers)))

    def restore(self) -> int:
        """Puts the newest copy back, in place, and forgets it, so that a second call goes one further back. Returns the
        number of the step that comes next. Raises `RuntimeError` when there is none (left)."""
        if not self._taken:
            raise RuntimeError(f"there is no snapshot yet; the first is taken after {self.every} steps")
        step, checkpoint = self._taken.pop()
        checkpoint.restore()
        for one in self._run.optimizers:
            one.zero_grad()
        return step
