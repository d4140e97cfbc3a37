"""The loss scaler under watch: steps that it skips are expected, a scale that collapses is not."""

from __future__ import annotations

import warnings

from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer

from nanlab.detect.guarding.failure import Failure
from nanlab.detect.patching import Listener
from nanlab.detect.state.screen import non_finite
from nanlab.detect.state.training import gradients

SCALE_WARNS, SCALE_FAILS = 1e-2, 1e-5  # as icefall does: a loss scale this small means gradients that no scale can cure


class ScaleWatch(Listener):
    """The part of a sentry that listens to a `GradScaler`. The loss is looked at before it is scaled, so that only what
    scaling itself does is forgiven."""

    saw_scaler = scaled = _warned = False

    def on_scale(self, scaler: GradScaler, outputs: object) -> None:
        self.saw_scaler = self.scaled = True
        self.look_at_loss((outputs,) if isinstance(outputs, Tensor) else tuple(outputs))

    def on_scaler_step(self, scaler: GradScaler, optimizer: Optimizer, stepped: bool) -> None:
        """A step that the scaler skipped is a step that the program made: it counts."""
        if not stepped and self.failure is None:
            self.count(optimizer)

    def on_scaler_update(self, scaler: GradScaler) -> None:
        self.history.scale = scale = scaler.get_scale()
        if scale < SCALE_FAILS and self.failure is None:
            bad = non_finite(gradients(self.every_param()))
            note = f"The loss scale fell to {scale:.3g}: gradients are not finite at any scale."
            self.fail(Failure("gradient", bad, max(0, self.step() - 1), notes=[note]))
        elif scale < SCALE_WARNS and not self._warned:
            self._warned = True
            said = f"the loss scale fell to {scale:.3g}; gradients are not finite again and again, no scale cures that"
            warnings.warn(f"step {self.step()}: {said} (nanlab stops at {SCALE_FAILS:g})", stacklevel=4)
