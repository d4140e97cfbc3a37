"""The patches of a confirmation, and their targets as plain data, so that another process can try them."""

from __future__ import annotations

from dataclasses import asdict

import torch
from torch import nn

from nanlab.detect.replay.patch import PatchCalls, PatchOperations, Target
from nanlab.detect.state.values import is_finite
from nanlab.detect.trace.labels import Place

WAYS = 3  # how many patches there are to try, the gentlest first


class MendWeights:
    """Zeros in place of what is not finite in a module's weights, for weights that were bad before any operation.
    `count` says in how many."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> MendWeights:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def mend(self, module: nn.Module) -> None:
        with torch.no_grad():
            for p in module.parameters():
                if not is_finite(p.detach()):
                    p.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
                    self.count += 1


def patches(target: dict | Target) -> list[PatchCalls | PatchOperations]:
    """The ways to mend the operands of `target`: where they are in trouble, at the operation itself, all of them."""
    target = read_target(target) if isinstance(target, dict) else target
    return [PatchCalls(target, False), PatchOperations(target), PatchCalls(target, True)]


def plain_target(target: object) -> dict | None:
    """A target as plain data; None for a report that has none."""
    return asdict(target) if isinstance(target, Target) else None


def read_target(data: dict | None) -> Target | None:
    return Target(**{**data, "place": Place(**data["place"])}) if data is not None else None
