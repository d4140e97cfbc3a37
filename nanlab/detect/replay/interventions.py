"""Replays of a scene with one thing changed, each saying what the change did.

A cause is what makes the step finite when it is taken away: a sample, the whole batch, the width of the numbers, one
operand. Taught in lesson 09_step_12001.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn
from torch.optim import Optimizer

from nanlab.detect.origin.report import Report
from nanlab.detect.replay import twins
from nanlab.detect.replay.hunt import hunt
from nanlab.detect.replay.mending import patches
from nanlab.detect.replay.patch import Target
from nanlab.detect.replay.replay import staged
from nanlab.detect.replay.scene import Scene
from nanlab.detect.state.samples import only as only_rows
from nanlab.detect.state.samples import size, without
from nanlab.detect.state.sources import Sources

StepFn = Callable[[object], object]


@dataclass
class Intervention:
    """What one change did. `before` and `after` are the hunts' reports without and with it."""

    change: str
    before: Report
    after: Report

    @property
    def cured(self) -> bool:
        """Whether the step was non-finite without the change and is finite with it."""
        return self.before.verdict == "non-finite" and self.after.verdict == "finite"

    def __str__(self) -> str:
        if self.before.verdict == self.after.verdict == "non-finite":
            moved = _place(self.before) != _place(self.after)
            return f"{self.change}: still non-finite, " + (
                f"now {_place(self.after)}" if moved else "at the same place"
            )
        return f"{self.change}: {self.before.verdict} before, {self.after.verdict} after"


def _place(report: Report) -> str:
    return f"{report.form} at line {report.line}" if report.line else f"in the {report.where}"


class Experiment:
    """A scene and the step to run from it. ``step_fn(batch)`` is as for `Scene.replay`; the model, its optimizers and
    the random state are put back after every replay. `replays` counts them."""

    def __init__(
        self,
        scene: Scene,
        step_fn: StepFn,
        model: nn.Module | None = None,
        optimizer: Optimizer | Sequence[Optimizer] | None = None,
    ) -> None:
        self.scene, self.step_fn, self.model, self.optimizer = scene, step_fn, model, optimizer
        self.replays = 0
        self._before: Report | None = None

    @property
    def before(self) -> Report:
        """The report on the step as it was; run when first asked for."""
        if self._before is None:
            self._before = self.run(self.scene.batch)
        return self._before

    def run(self, batch: object) -> Report:
        """One replay with `batch`, under the hunt."""
        self.replays += 1
        with staged(self.scene, self.model, self.optimizer):
            return hunt(lambda: self.step_fn(batch), self.model, self.optimizer, batch, step=self.scene.step)

    def without(self, index: int) -> Intervention:
        """The batch without sample `index` (of the first dimension). IndexError when there is none."""
        return self.other(without(self.scene.batch, [_checked(self.scene, index)]), f"without sample {index}")

    def only(self, index: int) -> Intervention:
        """The batch of sample `index` alone."""
        return self.other(only_rows(self.scene.batch, [_checked(self.scene, index)]), f"only sample {index}")

    def other(self, batch: object, change: str = "another batch") -> Intervention:
        """Another batch in place of the scene's."""
        return Intervention(change, self.before, self.run(batch))

    def float64(self) -> Intervention:
        """Weights, buffers, optimizer state, batch and what the step makes in double precision. What it cures was a
        matter of range or precision; a 0/0 stays."""
        self.replays += 1
        before, batch = self.before, self.scene.batch
        sources = Sources(self.model, self.optimizer, batch)
        kept = [(t, t.data) for kind, _, t in sources.everything() if kind != "grad"]
        with staged(self.scene, self.model, self.optimizer):
            try:
                with twins.wide(sources):
                    after = hunt(lambda: self.step_fn(batch), self.model, self.optimizer, batch, step=self.scene.step)
            finally:
                for t, data in kept:
                    t.grad = None
                    t.data = data
        return Intervention("in float64", before, after)

    def patched(self) -> Intervention:
        """The operands before the origin, mended where they are in trouble."""
        before = self.before
        after, change = before, "with the operand patched"
        if isinstance(before.target, Target):
            for mode in patches(before.target):
                with mode:
                    after = self.run(self.scene.batch)
                if mode.count and after.verdict == "finite":
                    break
        else:
            change = "with the operand patched (there is no operation to patch)"
        return Intervention(change, before, after)


def _checked(scene: Scene, index: int) -> int:
    count = size(scene.batch)
    if not 0 <= index < count:
        raise IndexError(f"the batch has samples 0 to {count - 1}, not {index}")
    return index
