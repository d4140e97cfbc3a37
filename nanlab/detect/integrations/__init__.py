"""The guard as a callback of a training framework: one line, and the loop stays the framework's.

    Trainer(..., callbacks=[nanlab.integrations.TransformersGuard()])
    lightning.Trainer(..., callbacks=[nanlab.integrations.LightningGuard()])

Each needs its framework installed, and imports it when it is first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nanlab.detect.integrations.lightning import LightningGuard
    from nanlab.detect.integrations.transformers import TransformersGuard

__all__ = ["LightningGuard", "TransformersGuard"]

_HOME = {"TransformersGuard": "transformers", "LightningGuard": "lightning"}


def __getattr__(name: str) -> type:
    if name not in _HOME:
        raise AttributeError(f"module 'nanlab.integrations' has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = found
    return found
