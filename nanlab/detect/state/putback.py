"""A copy of everything a training step changes, to run the same step again and again."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from torch import Tensor, nn

from nanlab.detect.state import randomness
from nanlab.detect.state.sources import Sources


def keep(model: nn.Module | None, optimizer: object = None, batch: object = None) -> Callable[[], None]:
    """Copies weights, buffers, gradients, optimizer state and settings, random state and the batch's tensors; returns
    what puts them back, as often as it is called. Costs one copy of each in memory; tensors keep their identity."""
    sources = Sources(model, optimizer, batch)
    held: dict[int, tuple[Tensor, Tensor, Tensor | None]] = {}
    for kind, _, t in sources.everything():
        if kind in ("parameter", "buffer", "batch"):
            held[id(t)] = (t, t.detach().clone(), None if t.grad is None else t.grad.detach().clone())
    states = [(o, *_state(o)) for o in sources.optimizers]
    random = randomness.now()

    def put_back() -> None:
        for t, values, grad in held.values():
            t.data = values.clone()
            t.grad = None if grad is None else grad.clone()
        for optimizer, state, groups in states:
            optimizer.state.clear()
            optimizer.state.update((p, deepcopy(values)) for p, values in state)
            for group, settings in zip(optimizer.param_groups, groups, strict=True):
                group.update(settings)
        random.restore()

    return put_back


def _state(optimizer: object) -> tuple[list, list[dict]]:
    """Each parameter with a copy of its state, and each group's settings."""
    groups = [{k: deepcopy(v) for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
    return [(p, deepcopy(values)) for p, values in optimizer.state.items()], groups
