"""The guard for the Trainer of Lightning."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from nanlab.detect.guarding.driven import Driven

LOGGING = ("log", "log_dict")


class LightningGuard(Callback):
    """``lightning.Trainer(..., callbacks=[LightningGuard()])``: stops before a step that is not finite spoils the
    weights, runs the module's ``training_step`` on its batches again under the hunt, and raises `nanlab.NonFiniteError`
    with report and scene out of ``trainer.fit()``. For automatic and manual optimization.

    `options` are those of `nanlab.guard`. The replay logs nothing; what else a ``training_step`` does is done once
    more. Cost: the guard's.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options
        self._driven: Driven | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Takes its place around the module's step."""
        self._driven = Driven(
            lambda given: _again(trainer, pl_module, given), pl_module, trainer.optimizers, **self.options
        )

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx) -> None:
        """A pass through the loop begins."""
        if self._driven is not None:
            self._driven.begin((batch, batch_idx))

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        """Anything bad is raised before it is logged or saved, unless gradients are still accumulating."""
        if self._driven is not None and not trainer.fit_loop._should_accumulate():
            self._driven.rest()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """The run ended, however it did."""
        if self._driven is not None:
            self._driven.end()
        self._driven = None


def _again(trainer: Trainer, module: LightningModule, given: tuple) -> None:
    """One micro-batch once more, as the trainer's loop makes it."""
    batch, index = given
    takes_index = module.training_step.__code__.co_argcount > 2
    with _silent(module), trainer.precision_plugin.train_step_context():
        output = module.training_step(*((batch, index) if takes_index else (batch,)))
    if module.automatic_optimization:
        loss = output if isinstance(output, Tensor) else output["loss"] if output is not None else None
        if loss is not None:
            trainer.strategy.backward(loss / trainer.accumulate_grad_batches, None)


@contextmanager
def _silent(module: LightningModule):
    """What the module logs goes nowhere."""
    for name in LOGGING:
        vars(module)[name] = lambda *args, **kwargs: None
    try:
        yield
    finally:
        for name in LOGGING:
            del vars(module)[name]
