"""The patches of a confirmation, and their targets as plain data, so that another process can try them."""

from __future__ import annotations

from dataclasses import asdict

from nanlab.detect.labels import Place
from nanlab.detect.patch import PatchCalls, PatchOperations, Target

WAYS = 3  # how many patches there are to try, the gentlest first


def patches(target: dict | Target) -> list[PatchCalls | PatchOperations]:
    """The ways to mend the operands of `target`: where they are in trouble, at the operation itself, all of them."""
    target = read_target(target) if isinstance(target, dict) else target
    return [PatchCalls(target, False), PatchOperations(target), PatchCalls(target, True)]


def plain_target(target: object) -> dict | None:
    """A target as plain data; None for a report that has none."""
    return asdict(target) if isinstance(target, Target) else None


def read_target(data: dict | None) -> Target | None:
    return Target(**{**data, "place": Place(**data["place"])}) if data is not None else None
