"""One line in a training loop: stops before the weights are spoilt, runs the step again under the hunt, explains.

    for batch in guard(loader, model, optimizer):
        ...
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite
from typing import Literal

from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab.detect.guarding.failure import Failure
from nanlab.detect.guarding.firstlook import first_look
from nanlab.detect.guarding.history import Skipped, history_of, listed
from nanlab.detect.guarding.postmortem import postmortem
from nanlab.detect.guarding.rerun import Rerun, Start
from nanlab.detect.guarding.watcher import Pass, StepWatcher
from nanlab.detect.origin.report import NonFiniteError, Report
from nanlab.detect.patching import innermost
from nanlab.detect.replay.scene import Scene, SceneError
from nanlab.detect.replay.staging import Staging, staged
from nanlab.detect.state.audit import audit
from nanlab.detect.state.buffers import Buffers
from nanlab.detect.state.checkpoint import Rollback
from nanlab.detect.state.randomness import RandomState, Recorder, now
from nanlab.detect.state.screen import norm
from nanlab.detect.state.training import as_list, state_tensors

SAW_NOTHING = "guard saw no backward call, no optimizer step and no guard.loss(...): it looked at nothing"
MOST_PENDING = 64  # micro-batches of one accumulation that are kept for a replay


class guard:
    """Yields the batches of `loader` and watches the steps that the loop body makes with them.

    The loss is seen where backward is called (or given with ``guard.loss(loss)`` in a loop that calls none), loss and
    gradients are looked at before ``optimizer.step``, weights and optimizer state before the first step, after every
    step that could spoil them, and every `audit_every` steps. When something is not finite the step is not made:
    random state and buffers are put back and the same batch is yielded again under the hunt. Then `NonFiniteError` is
    raised; its ``report`` says where the value came from, its ``scene`` holds the step. Weights, buffers, optimizer
    state and random state are then those before the step, gradients are None. A NaN that the optimizer itself makes is
    seen just after its
    step: it is raised at once, and the report says that the weights are spoilt.

    What the loop body does besides the step is done once more in the replay: it logs again, counts again, and an
    ``enumerate`` around the guard counts that batch twice. Weights that other code changes, a scheduler's own count,
    and batches changed in place by the body cannot be put back. An exception or ``break`` in the body detaches the
    guard.

    model: names parameters and modules, and brings the buffers (BatchNorm) that a replay needs. Several
    models get names such as ``0.weight``. optimizer: one or several.
    on_failure: ``"raise"``; ``"save"`` writes the scene to `scene` and raises; ``"skip"`` drops the step without a
    replay and counts it in ``skipped``, warns at the end, and raises at one more than `skip_limit`.
    confirm: once the origin is known, yields the batch up to three times more with its operands mended, and says in
    ``report.confirmed_by`` whether that made the step finite.
    snapshot_every: keeps a copy of weights and optimizer state from before the last healthy step that is this many
    steps on (off by default: it holds a second copy of both in memory and copies it that often); ``rollback()``
    restores it.

    Cost: see ``benchmarks/overhead.py``. Memory: one copy of the buffers, the references of batches that are still
    accumulating; no graph and no weights are kept.
    """

    def __init__(
        self,
        loader: Iterable,
        model: nn.Module | list[nn.Module] | tuple[nn.Module, ...] | None = None,
        optimizer: Optimizer | Sequence[Optimizer] | None = None,
        *,
        on_failure: Literal["raise", "save", "skip"] = "raise",
        scene: str | os.PathLike = "nanlab-scene.pt",
        skip_limit: int = 10,
        audit_every: int = 100,
        snapshot_every: int = 0,
        confirm: bool = False,
    ) -> None:
        if on_failure not in ("raise", "save", "skip"):
            raise ValueError(f"on_failure is {on_failure!r}; give 'raise', 'save' or 'skip'")
        self.loader, self.optimizers = loader, as_list(optimizer)
        self.model = model = nn.ModuleList(model) if isinstance(model, list | tuple) else model
        self.on_failure, self.scene_path, self.skip_limit, self.audit_every = on_failure, scene, skip_limit, audit_every
        self.confirm = confirm
        self.history = history_of(model, self.optimizers)
        self.skipped: list[Skipped] = []
        params = list(model.parameters()) if model is not None else []
        self._watcher = StepWatcher(self.optimizers, self.history, self._spoilt, lambda: params)
        self._recorder = Recorder()
        self._buffers = Buffers(model)
        self._rollback = Rollback(model, self.optimizers, snapshot_every) if snapshot_every else None
        self._pending: list[tuple[object, tuple]] = []  # each batch since the last step, and the random state before it

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    @property
    def trajectory(self):
        """The last 64 steps."""
        return self.history.trajectory

    def __iter__(self) -> Iterator:
        self._watcher.attach()
        try:
            yield from self._batches()
        finally:
            self._watcher.detach()
            self._pending.clear()
        self._say_what_passed()

    def _batches(self) -> Iterator:
        bad_at_start = None
        if not self.history.looked:
            bad_at_start = first_look(self.model, self.optimizers)
            self.history.looked = True
        if (stage := staged()) is not None and stage.waiting:
            yield from self._replay_staged(stage)
            return
        watcher, pending, take = self._watcher, self._pending, self._recorder.take_raw
        seen = False
        for batch in self.loader:
            if not pending and self._buffers:
                self._buffers.take()
            pending.append((batch, take()))
            if bad_at_start is not None:
                report = yield from self._rerun(self._starts()).first_read(bad_at_start)
                raise self._error(report, self._starts(), None)
            watcher.now = now = Pass()
            yield batch
            if now.failure is None and now.stepped:  # the usual case, without the calls of the others
                seen = True
                self._stepped()
                continue
            watcher.end()
            seen = seen or now.saw_loss
            if now.failure is not None:
                yield from self._after_failure(now.failure)
            else:
                self._did_not_step()
        if not seen and self.history.batches:
            warnings.warn(SAW_NOTHING, stacklevel=3)

    def _replay_staged(self, stage: Staging) -> Iterator:
        """Yields the batches of the scene that ``nanlab hunt --scene`` put under this loop, and no others."""
        scene = stage.scene
        stage.fill(self.model, self.optimizers)
        starts = [Start(batch, now()) for batch in stage.take_all()]
        if scene.random is not None:
            starts[0].random = scene.random
        where = (scene.report or {}).get("sink") or "gradient"
        report = yield from self._rerun(starts).once(Failure(str(where), [], scene.step), hunting=True)
        if report is not None:
            raise self._error(report, starts, None)

    def _starts(self, last: int = 0) -> list[Start]:
        """What a replay needs of the passes since the last step, or of the last few of them."""
        return [Start(batch, RandomState(*raw)) for batch, raw in self._pending[-last:]]

    def _stepped(self) -> None:
        history = self.history
        history.batches += 1
        for key in self._watcher.now.stepped:
            step = history.steps[key]
            break
        if self.audit_every and step % self.audit_every == 0 and not isfinite(norm(self._everything())):
            self._audit(step)
        if self._rollback is not None:
            self._rollback.maybe_take(step)
        self._pending.clear()

    def _did_not_step(self) -> None:
        now = self._watcher.now
        self.history.batches += 1
        if not self.optimizers:
            self._watcher.look_at_weights()
        accumulating = self.optimizers and now.saw_loss and not now.saw_scaler
        if not accumulating or len(self._pending) >= MOST_PENDING:
            self._pending.clear()

    def _everything(self) -> list[Tensor]:
        buffers = self.model.buffers() if self.model is not None else ()
        held = [*self._watcher.every_param(), *(b for b in buffers if b.is_floating_point())]
        return [t.detach() for t in held] + [t for one in self.optimizers for t in state_tensors(one)]

    def _audit(self, step: int) -> None:
        """Everything, also what no cheap look covers. What a buffer may hold on purpose is no failure, a NaN is."""
        found = audit(self.model, self.optimizers)
        if found.faults:
            first = found.faults[0]
            where = "optimizer_state" if first.kind == "optimizer state" else "weights"
            note = f"Found by the audit every {self.audit_every} steps: {first}."
            self._spoilt(Failure(where, [], step - 1, spoilt=True, notes=[note]))

    def _spoilt(self, failure: Failure) -> None:
        """Raises at once what was seen only after the step; everything else waits for the end of the pass."""
        if failure.spoilt:
            raise self._error(postmortem(failure, self.model, self.optimizers), self._starts(1), failure)

    def _after_failure(self, failure: Failure) -> Iterator:
        needed = self._starts(1 if failure.where == "loss" else 0)
        rerun = self._rerun(needed)
        rerun.drop(failure)
        if self.on_failure == "skip" and len(self.skipped) < self.skip_limit:
            self.skipped.append(Skipped(failure.step, failure.where))
            self._pending.clear()
            return
        report = yield from rerun.run(failure)
        if self.confirm and report.verdict == "non-finite":
            yield from rerun.confirm(failure, report)
        raise self._error(report, needed, failure)

    def _rerun(self, starts: list[Start]) -> Rerun:
        return Rerun(self._watcher, self.model, self.optimizers, starts, self._buffers)

    def _error(self, report: Report, starts: Sequence[Start], failure: Failure | None) -> NonFiniteError:
        """The error to raise: the report completed by the trajectory, and the scene, saved where that was asked for."""
        self._watcher.detach()
        if failure is not None:
            report.notes += [note for note in failure.notes if note not in report.notes]
        self.history.tell(report)
        if self.skipped:
            report.notes.append(f"{len(self.skipped)} failing steps were skipped before it: {listed(self.skipped)}.")
        scene = self._scene(report, starts)
        self._pending.clear()
        return NonFiniteError(report, scene)

    def _scene(self, report: Report, starts: Sequence[Start]) -> Scene | None:
        try:
            scene = Scene.capture(
                self.model,
                self.optimizers,
                starts[-1].batch,
                step=report.step or 0,
                random=starts[0].random,
                buffers=self._buffers.named(),
                trajectory=self.history.trajectory,
            )
            scene.batches = [one.batch for one in starts]
            scene.report = report.to_json()
            if report.verdict == "not-reproduced":
                scene.not_captured = [what for one in starts for what in one.in_place()]
            if self.on_failure == "save":
                scene.save(self.scene_path)
                report.notes.append(f"The scene is saved: Scene.load({os.fspath(self.scene_path)!r}).")
        except (SceneError, MemoryError, RuntimeError) as error:  # the report matters more than the scene
            report.notes.append(f"The scene was not kept: {error}")
            return None
        return scene

    def rollback(self) -> int:
        """Restores weights and optimizer state to before the last healthy snapshot; returns the step that comes next.
        Raises `RuntimeError` when ``snapshot_every`` was not given or no snapshot has been taken yet."""
        if self._rollback is None:
            raise RuntimeError("no snapshots are taken; give guard(..., snapshot_every=100)")
        return self._rollback.restore()

    def _say_what_passed(self) -> None:
        if self.skipped:
            warnings.warn(f"guard skipped {len(self.skipped)} steps that were not finite: {listed(self.skipped)}",
                          stacklevel=2)  # fmt: skip

    class _Loss:
        """``guard.loss(loss)`` speaks to the innermost guard, ``g.loss(loss)`` to that one."""

        def __get__(self, instance: guard | None, owner: type) -> Callable[[Tensor], Tensor]:
            def loss(value: Tensor) -> Tensor:
                """Shows the guard a loss that no backward call will; returns it unchanged."""
                watcher = instance._watcher if instance is not None else innermost()
                if not isinstance(watcher, StepWatcher):
                    raise RuntimeError("guard.loss(...) was called outside a loop over a guard")
                watcher.look_at_loss((value,))
                return value

            return loss

    loss = _Loss()
