"""Watches an unchanged script: hunts every step, or guards it with snapshots where hunting costs too much."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parameter import UninitializedTensorMixin
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import _disable_current_modes

from nanlab.detect.explain import explain
from nanlab.detect.firstlook import BadAtStart, first_look
from nanlab.detect.history import History
from nanlab.detect.hunt import WRITTEN
from nanlab.detect.listen import innermost, start, stop
from nanlab.detect.mending import WAYS, MendWeights, patches, plain_target, read_target
from nanlab.detect.pace import Pace
from nanlab.detect.past import LayeredTags
from nanlab.detect.patch import PatchCalls, PatchOperations
from nanlab.detect.report import Report
from nanlab.detect.script import Stopped
from nanlab.detect.screen import gradients
from nanlab.detect.sentry import Failure, Sentry
from nanlab.detect.snapshot import Snapshots, Woken, possible
from nanlab.detect.tracer import Tracer
from nanlab.detect.values import is_finite

MOST_TO_CONFIRM = 0.1  # share of the time that goes into copies kept only to confirm
ONE_COPY = 1.0  # seconds: so that a short run has some too


class ScriptWatch(Sentry):
    """Context manager around the run of a script. It learns modules and optimizers as they are used. On a failure it
    builds the report, keeps it in `found`, and raises `Stopped` at the script's own line.

    every_step: never give way to the guard. from_step: leave the script alone until that many optimizer steps were made.
    """

    def __init__(self, every_step: bool = False, from_step: int = 0) -> None:
        super().__init__([], History(), self._found)
        self.every_step, self.from_step = every_step, from_step
        self.look_in_backward = self.look_always = True
        self.found: Report | None = None
        self.tracer: Tracer | None = None
        self.pace, self.snapshots = Pace(), Snapshots()
        self.woken: Woken | None = None
        self.why_no_snapshots: str | None = None
        self.backwards = 0
        self._bad_start: BadAtStart | None = None
        self._roots: list[nn.Module] = []
        self._healthy: set[tuple[int, str]] = set()  # buffers that were finite when last looked at
        self._known: set[int] = set()
        self._leaves: list[Tensor] = []
        self._pending: Report | None = None
        self._patch: PatchCalls | PatchOperations | MendWeights | None = None
        self._between = True  # no forward pass since the last step ended
        self._began: float | None = None
        self._undo: list[Callable[[], None]] = []

    # coming and going

    def __enter__(self) -> ScriptWatch:
        undo = self._undo
        undo.append(register_module_forward_pre_hook(self._before_forward).remove)
        undo.append(register_optimizer_step_pre_hook(self.before_step).remove)
        undo.append(register_optimizer_step_post_hook(self.after_step).remove)
        undo.append(self._hear_zero_grad())
        undo.append(self._hear_loader())
        start(self)
        undo.append(lambda: stop(self))
        if self.from_step == 0:
            self._trace(True)
        return self

    def __exit__(self, *exc: object) -> None:
        self._trace(False)
        while self._undo:
            self._undo.pop()()
        self.snapshots.drop()

    def _hear_zero_grad(self) -> Callable[[], None]:
        plain = Optimizer.zero_grad

        def zero_grad(optimizer, *args, **kwargs):
            self._step_start()
            return plain(optimizer, *args, **kwargs)

        Optimizer.zero_grad = zero_grad
        return lambda: setattr(Optimizer, "zero_grad", plain)

    def _hear_loader(self) -> Callable[[], None]:
        """A batch that a DataLoader hands over is the input of what follows, whatever its collate function did."""
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        plain = _BaseDataLoaderIter.__next__

        def hand_over(iterator):
            batch = plain(iterator)
            self._seal()
            return batch

        _BaseDataLoaderIter.__next__ = hand_over
        return lambda: setattr(_BaseDataLoaderIter, "__next__", plain)

    def _trace(self, on: bool) -> None:
        if on and self.tracer is None:
            self.tracer = Tracer()
            self.tracer.tags = LayeredTags()
            for root in self._roots:
                self.tracer.saw_root(root)
            for one in self.optimizers:
                self.tracer.saw_optimizer(one)
            self.tracer.__enter__()
        elif not on and self.tracer is not None:
            self.tracer.__exit__(None, None, None)
            self.tracer = None
        self.look_always = self.look_in_backward = self.tracer is not None

    # the start of a step

    def _before_forward(self, module: nn.Module, args: tuple) -> None:
        if id(module) not in self._known:
            self._meet(module)
        self._step_start()
        self._between = False

    def _meet(self, module: nn.Module) -> None:
        """A module called outside any other for the first time: looks at its weights before they are used."""
        self._known.update(id(m) for m in module.modules())
        self._roots.append(module)
        self._meet_again(module)
        index = len(self._roots) - 1
        self._healthy |= {(index, name) for name, b in module.named_buffers() if not _lazy(module) and is_finite(b)}
        if self.from_step == 0 and not any(self.history.steps.values()) and not _lazy(module):
            with _disable_current_modes():
                bad = first_look(module, [])
            if bad is not None and self.tracer is not None:
                self._bad_start = bad
                self.tracer.watch_readers(list(bad.bad.values()))

    def _step_start(self) -> None:
        """Called wherever a step may begin; acts once a step, at the first of them."""
        if not self._between:
            return
        self._between = False
        if self.failure is None:
            self.begin()
        self._seal()
        if self.tracer is not None:
            self.tracer.losses.clear()
        if self.woken is not None:
            if self.step() > self.woken.last_step:
                self._end_of_copy()
        elif self.found is None:
            self._choose()

    def _seal(self) -> None:
        if self.tracer is not None:
            self.tracer.tags.seal()

    def _choose(self) -> None:
        """How the coming step is run."""
        if self.from_step:
            self._trace(self.step() >= self.from_step)
            return
        if self.every_step or self.why_no_snapshots:
            return
        now = time.thread_time()
        took, self._began = now - (self._began or now), now
        mode = self.pace.took(took)
        if mode == "plain" and (why := possible()):
            self.why_no_snapshots, mode = why, "hunt"
        self._trace(mode == "hunt")
        if self.snapshots.due(self.step(), self.pace.plain_step) and (mode == "plain" or self._may_copy()):
            self.woken = self.snapshots.take(self.step())
            if self.woken is not None:
                self._wake_up(self.woken)
        self._began = time.thread_time()

    def _may_copy(self) -> bool:
        """While hunting, copies serve to confirm what is found; they may take a tenth of the time."""
        return possible() is None and self.snapshots.seconds <= MOST_TO_CONFIRM * (self.pace.spent + ONE_COPY)

    def _wake_up(self, woken: Woken) -> None:
        """In a copy: hunts, or runs with the operands before a known origin mended."""
        target = woken.task.get("patch")
        self._trace(target is None)
        self.failure = self._pending = self._bad_start = None
        if target is not None:
            self.look_always = True
            self._patch = MendWeights() if target["op"] == "external" else patches(target)[woken.task["way"]]
            self._patch.__enter__()
            for root in self._roots:
                self._meet_again(root)

    def _meet_again(self, module: nn.Module) -> None:
        if isinstance(self._patch, MendWeights) and not _lazy(module):
            self._patch.mend(module)

    def _end_of_copy(self) -> None:
        """In a copy that ran past the failing step, or to the end of the script, and met nothing."""
        self.woken.send({"count": self._patch.count} if self._patch is not None else None)

    # what the looks find

    def before_backward(self, losses: Sequence[Tensor]) -> None:
        self._raise_pending()
        self._raise_bad_start()
        if not self.optimizers:
            self._leaves = leaves_of(losses)
        super().before_backward(losses)

    def on_grad(self, outputs: Sequence[Tensor], create_graph: bool) -> None:
        if self._patch is None:  # a patch differentiates the call that it mends, on its own
            super().on_grad(outputs, create_graph)

    def after_backward(self) -> None:
        self.backwards += 1
        super().after_backward()
        if not self.optimizers:
            self.history.batches += 1
            self._between = True

    def every_param(self) -> list[Tensor]:
        roots = [p for root in self._roots for p in root.parameters() if not isinstance(p, UninitializedTensorMixin)]
        return list({id(p): p for p in [*super().every_param(), *roots, *self._leaves]}.values())

    def before_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple | None:
        if innermost() is not self:  # a guard in the script looks after its own steps
            return None
        if not any(optimizer is one for one in self.optimizers):
            self.optimizers.append(optimizer)
            self._first_look_at(optimizer)
        self._raise_bad_start()
        if self._pending is not None:
            self._raise_pending()
        return super().before_step(optimizer, args, kwargs)

    def _first_look_at(self, optimizer: Optimizer) -> None:
        """Weights that no module showed, and a state that was loaded."""
        if self.from_step == 0 and self._bad_start is None:
            with _disable_current_modes():
                self._bad_start = first_look(None, [optimizer])

    def after_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        self._between = True
        if innermost() is self:
            super().after_step(optimizer, args, kwargs)
            self._look_at_buffers(self.step(optimizer) - 1)

    def _look_at_buffers(self, step: int) -> None:
        """Running statistics and the like that were finite and no longer are; an infinity that the program writes on
        purpose, a mask, is let be."""
        if self.tracer is None or self.found is not None:
            return
        with _disable_current_modes():
            bad = [b for name, b in self._buffers() if name in self._healthy and not is_finite(b)]
            report = explain(self.tracer, "buffer", bad, step=step) if bad else None
        if report is not None:
            self._healthy -= {name for name, b in self._buffers() if not is_finite(b)}
            if report.form not in WRITTEN:
                self._stop(report)

    def _buffers(self) -> Iterator[tuple[tuple[int, str], Tensor]]:
        return (((i, name), b) for i, root in enumerate(self._roots) for name, b in root.named_buffers())

    def _raise_bad_start(self) -> None:
        """Weights that were bad before the first forward pass and still are when the first step is due."""
        bad, self._bad_start = self._bad_start, None
        if bad is not None and (bad := bad.still()) is not None:
            with _disable_current_modes():
                report = bad.report(self.tracer, self.step())
                note = self.tracer.tags.note_on(list(bad.bad.values())) if self.tracer is not None else None
            report.notes += [note] if note else []
            self._stop(report)

    def _raise_pending(self) -> None:
        """Gradients that were bad after backward; they count if they still are when they are used or added to, or have
        reached the weights by hand meanwhile."""
        pending, self._pending = self._pending, None
        if pending is not None:
            params = self.every_param()
            if not all(map(is_finite, gradients(params))) or not all(is_finite(p.detach()) for p in params):
                self._stop(pending)

    def _found(self, failure: Failure) -> None:
        self.failure = None
        if self.found is not None:  # the script caught us and went on
            return
        if self._patch is not None:
            self.woken.send(None)
        if self.tracer is None:
            self._stop(self._replayed(failure))
        with _disable_current_modes():
            report = explain(self.tracer, failure.where, failure.tensors, step=failure.step)
            note = self.tracer.tags.note_on(failure.tensors)
        report.notes += failure.notes + ([note] if note else [])
        if failure.where == "gradient" and failure.optimizer is None:
            self._pending = report
        else:
            self._stop(report)

    def _replayed(self, failure: Failure) -> Report:
        """The report of the newest snapshot, run again under the hunt to the end of the failing step."""
        kept = self.snapshots.child
        data = self.snapshots.wake(failure.step, {})
        if data is not None:
            target = data.pop("target")
            report = Report(**{key: data[key] for key in Report.__dataclass_fields__ if key in data})
            report.target = read_target(target)
            report.notes.append(f"Found by the guard at step {failure.step}; the snapshot before step {kept.step} was run "
                                "again under the hunt: reproduced.")  # fmt: skip
            return report
        what = f"the snapshot before step {kept.step} ran again and stayed finite" if kept else "no snapshot was there"
        verdict = "not-reproduced" if kept else "non-finite"
        return Report(verdict, step=failure.step, where=failure.where, sink=failure.where,
                      notes=[f"The guard saw the {failure.where} of step {failure.step} not finite; {what}.",
                             f"A second run can hunt that step: --from-step {failure.step}."])  # fmt: skip

    def _confirm(self, report: Report) -> None:
        """Runs the newest snapshot again with the operands before the origin mended; a step that is finite then confirms
        the origin."""
        target = plain_target(report.target)
        if target is None or report.confirmed_by:
            return
        for way in range(WAYS):
            answer = self.snapshots.wake(report.step, {"patch": target, "way": way})
            if isinstance(answer, dict) and answer.get("count"):
                report.confirmed_by.append("operand patched")
                return

    def _stop(self, report: Report) -> None:
        if self.woken is not None:
            self.woken.send({**report.to_json(), "target": plain_target(report.target)} if self._patch is None else None)
        if self.found is None:
            self.found = report
            self._confirm(report)
            report.trajectory = self.history.trajectory.to_json()["rows"]
            verdict, evidence = self.history.trajectory.judge()
            report.notes.append(f"The run before it{' was ' + verdict if verdict != 'short' else ''}: {evidence}.")
            raise Stopped

    def at_end(self) -> None:
        """The script ended: what was waiting for a step that never came, or was only ever read by the script."""
        import contextlib

        with contextlib.suppress(Stopped):
            self._raise_pending()
            self._raise_bad_start()
            if self.woken is not None:
                self._end_of_copy()


def _lazy(module: nn.Module) -> bool:
    return any(isinstance(p, UninitializedTensorMixin) for p in module.parameters())


def leaves_of(losses: Sequence[Tensor]) -> list[Tensor]:
    """The tensors whose ``.grad`` backward from `losses` will fill."""
    todo, seen, found = [loss.grad_fn for loss in losses if loss.grad_fn is not None], set(), []
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        todo += [parent for parent, _ in node.next_functions if parent is not None]
    return found
