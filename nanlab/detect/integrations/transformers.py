"""The guard for the Trainer of transformers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from transformers import Trainer, TrainerCallback

from nanlab.detect.guarding.driven import Driven


class TransformersGuard(TrainerCallback):
    """``Trainer(..., callbacks=[TransformersGuard()])``: stops before a step that is not finite spoils the weights,
    runs the Trainer's ``training_step`` on its batches again under the hunt, and raises `nanlab.NonFiniteError` with
    report and scene out of ``trainer.train()``.

    `options` are those of `nanlab.guard` (``on_failure``, ``scene``, ``confirm``, ``audit_every``, …). What a
    ``compute_loss`` of your own does besides the step is done once more in the replay. Cost: the guard's.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options
        self._driven: Driven | None = None
        self._undo: Callable[[], None] = lambda: None

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs) -> None:
        """Takes its place around the Trainer's step."""
        self._leave()
        trainer = _trainer(sys._getframe(1))
        plain = trainer.training_step
        driven = Driven(lambda batch: plain(*_fresh(batch)), model, optimizer, **self.options)

        def training_step(model, inputs, num_items_in_batch=None):
            batch = (model, dict(inputs), num_items_in_batch)
            driven.begin(batch)
            return plain(*_fresh(batch))

        trainer.training_step = training_step
        self._driven, self._undo = driven, lambda: vars(trainer).pop("training_step", None)

    def on_step_end(self, args, state, control, **kwargs) -> None:
        """The optimizer has stepped, or stood still: anything bad is raised before it is logged or saved."""
        if self._driven is not None:
            self._driven.rest()

    def on_train_end(self, args, state, control, **kwargs) -> None:
        """Leaves the Trainer as it was."""
        self._leave()

    def _leave(self) -> None:
        if self._driven is not None:
            self._driven.end()
        self._undo()
        self._driven, self._undo = None, lambda: None


def _fresh(batch: tuple) -> tuple:
    """The arguments of ``training_step``; some losses pop what they need from the inputs."""
    model, inputs, items = batch
    return model, dict(inputs), items


def _trainer(frame: FrameType | None) -> Any:
    """The Trainer that calls its callbacks; they are not told who it is."""
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, Trainer):
            return owner
        frame = frame.f_back
    raise RuntimeError("TransformersGuard is a callback of transformers.Trainer: give it in Trainer(callbacks=[...])")
