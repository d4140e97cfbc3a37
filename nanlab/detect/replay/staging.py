"""Puts a saved scene under a script: the scene's weights and random state at the first forward pass, its batch as the
first one that a guard or a DataLoader hands over."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from nanlab.detect import patching
from nanlab.detect.replay.scene import Scene, SceneError
from nanlab.detect.state.training import Optimizers

OWN_BATCH = (
    "The script takes its batches from neither a guard nor a DataLoader: its own first batch was used. "
    "Scene.load(...).replay(step_fn) uses the scene's."
)
_staged: list[Staging] = []


class Staging:
    """Context manager; `said` tells what could be put under the script and what could not."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.said: list[str] = []
        self._undo: list[Callable[[], None]] = []
        self._batches = list(scene.batches)
        self._filled = False

    def __enter__(self) -> Staging:
        self._undo.append(patching.on_call(lambda module, args: self.fill(module)))
        self._undo.append(patching.on_batch(self._exchange))
        _staged.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _staged.remove(self)
        while self._undo:
            self._undo.pop()()
        if self._batches:
            self.said.append(OWN_BATCH)

    @property
    def waiting(self) -> bool:
        """Whether batches of the scene have not been handed over yet."""
        return bool(self._batches)

    def take_all(self) -> list[object]:
        """All of the scene's batches that are left."""
        batches, self._batches = self._batches, []
        return batches

    def _exchange(self, own: object) -> object:
        """The scene's next batch, and the loader's own once there is none left."""
        return self._batches.pop(0) if self._batches else own

    def fill(self, model: nn.Module | None, optimizers: Optimizers = None) -> None:
        """Gives `model` the scene's weights, buffers and random state, once."""
        if self._filled:
            return
        self._filled = True
        try:
            lacking = self.scene.put_back(model, optimizers)
        except SceneError as error:
            self.said.append(f"The scene's weights were not used: {error}")
            return
        self.said.append(f"Replayed from the scene of step {self.scene.step}.")
        self.said += [f"Not put back: {what}." for what in lacking]


def staged() -> Staging | None:
    """The scene that the running script is to begin with, if any."""
    return _staged[-1] if _staged else None
