"""A rolling copy of the last healthy weights and optimizer state, for runs that are ruined before they fail.

The weights just before an explosion are finite and already useless; a snapshot from some steps earlier is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab.detect.replay.scene import named_buffers, named_weights

KEEP = 2  # the newest snapshot may lie inside the explosion; the one before it is `every` steps older


class Rollback:
    """Takes a snapshot every `every` steps and keeps two. Costs two copies of weights, buffers and optimizer state in
    memory, and copying them that often."""

    def __init__(self, model: nn.Module | None, optimizers: Sequence[Optimizer], every: int) -> None:
        if every < 1:
            raise ValueError(f"snapshot_every is {every}; give a number of steps")
        self.model, self.optimizers, self.every = model, optimizers, every
        self._taken: list[tuple[int, dict[str, Tensor], list[dict]]] = []

    def maybe_take(self, step: int) -> None:
        """Takes a snapshot when `every` steps have passed since the last one."""
        if not self._taken or step - self._taken[-1][0] >= self.every:
            tensors = {name: t.detach().clone() for name, t in self._live().items()}
            self._taken.append((step, tensors, [deepcopy(one.state_dict()) for one in self.optimizers]))
            del self._taken[:-KEEP]

    def restore(self) -> int:
        """Puts the newest snapshot back, in place, and forgets it, so that a second call goes one further back. Returns
        the number of the step that comes next. Raises `RuntimeError` when there is none (left)."""
        if not self._taken:
            raise RuntimeError(f"there is no snapshot yet; the first is taken after {self.every} steps")
        step, tensors, states = self._taken.pop()
        with torch.no_grad():
            for name, t in self._live().items():
                t.copy_(tensors[name])
        for one, state in zip(self.optimizers, states, strict=True):
            one.load_state_dict(state)
            one.zero_grad()
        return step

    def _live(self) -> dict[str, Tensor]:
        buffers = {f"buffer {name}": b for name, b in named_buffers(self.model).items()}
        return named_weights(self.model, self.optimizers) | buffers
