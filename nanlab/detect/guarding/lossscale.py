"""The loss scale under watch: steps that a scaler skips are expected, a scale that collapses is not."""

from __future__ import annotations

import warnings

WARNS, FAILS = 1e-2, 1e-5  # as icefall does: a loss scale this small means gradients that no scale can cure


class LossScale:
    def __init__(self) -> None:
        self._warned = False

    def fault(self, scale: float, step: int) -> str | None:
        """What is wrong with `scale` after `step` steps, or None; warns once on the way down."""
        if scale < FAILS:
            return f"The loss scale fell to {scale:.3g}: gradients are not finite at any scale."
        if scale < WARNS and not self._warned:
            self._warned = True
            said = f"the loss scale fell to {scale:.3g}; gradients are not finite again and again, no scale cures that"
            warnings.warn(f"step {step}: {said} (nanlab stops at {FAILS:g})", stacklevel=4)
        return None
