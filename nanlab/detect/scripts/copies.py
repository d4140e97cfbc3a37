"""What stopped copies of a script are for: to run a failing step again under the hunt, and to confirm what was
found."""

from __future__ import annotations

from torch import nn

from nanlab.detect.guarding.failure import Failure
from nanlab.detect.origin.report import Report, Target
from nanlab.detect.replay.interventions import MendWeights
from nanlab.detect.replay.patch import WAYS, PatchCalls, PatchOperations, patches
from nanlab.detect.scripts.snapshot import Snapshots, Woken, possible
from nanlab.detect.state.training import is_lazy

MOST_TO_CONFIRM = 0.1  # share of the time that goes into copies kept only to confirm
ONE_COPY = 1.0  # seconds: so that a short run has some too


class Copies:
    """The copies of one script. In the script itself `woken` is None; in a copy that runs it says why, and `patch` is
    what mends the operands there, if that is its task."""

    def __init__(self) -> None:
        self.snapshots = Snapshots()
        self.woken: Woken | None = None
        self.patch: PatchCalls | PatchOperations | MendWeights | None = None
        self.due, self.drop = self.snapshots.due, self.snapshots.drop

    def cheap(self, spent: float) -> bool:
        """Whether a copy may be taken that only serves to confirm, after `spent` seconds of hunting."""
        return possible() is None and self.snapshots.seconds <= MOST_TO_CONFIRM * (spent + ONE_COPY)

    def forget(self) -> None:
        """In a process that the script forked: lets go of what belongs to its parent."""
        self.snapshots.forget()

    # in the script

    def take(self, step: int) -> bool:
        """Takes a copy before `step`. True in a copy that was woken, for which `begin` is then to be called."""
        self.woken = self.snapshots.take(step)
        if self.woken is None:
            return False
        target = self.woken.task.get("patch")
        if target is not None:
            mended = Target.from_data(target)
            self.patch = MendWeights() if mended.op == "external" else patches(mended)[self.woken.task["way"]]
        return True

    def replayed(self, failure: Failure) -> Report:
        """The report of the newest copy, run again under the hunt to the end of the failing step."""
        kept = self.snapshots.child
        data = self.snapshots.wake(failure.step, {})
        seen = f"the {failure.where} of step {failure.step}"
        if kept is not None and isinstance(data, dict):
            report = Report.from_data(data)
            again = f"the snapshot before step {kept.step} was run again under the hunt: reproduced"
            report.notes.append(f"The guard saw {seen} not finite; {again}.")
            return report
        what = f"the snapshot before step {kept.step} ran again and stayed finite" if kept else "no snapshot was there"
        notes = [
            f"The guard saw {seen} not finite; {what}.",
            f"Another run can hunt that step: --from-step {failure.step}.",
        ]
        verdict = "not-reproduced" if kept else "non-finite"
        return Report(verdict, step=failure.step, where=failure.where, sink=failure.where, notes=notes)

    def confirm(self, report: Report) -> None:
        """Runs the newest copy again with the operands before the origin mended; a step that is finite then confirms
        the origin."""
        if report.target is None or report.confirmed_by:
            return
        target = report.target.to_data()
        for way in range(WAYS):
            answer = self.snapshots.wake(report.step or 0, {"patch": target, "way": way})
            if isinstance(answer, dict) and answer.get("count"):
                report.confirmed_by.append("operand patched")
                return

    # in a copy

    def begin(self, roots: list[nn.Module]) -> None:
        """Puts the patch on, if that is this copy's task. The tracer must be off: modes leave in reverse order."""
        if self.patch is not None:
            self.patch.__enter__()
            for root in roots:
                self.mend(root)

    def mend(self, module: nn.Module) -> None:
        """Mends the weights of `module` where that is this copy's task."""
        if isinstance(self.patch, MendWeights) and not is_lazy(module):
            self.patch.mend(module)

    def answer(self, report: Report | None) -> None:
        """Ends a copy that met something: the report where it hunts, nothing where the patch did not help."""
        if self.woken is not None:
            self.woken.send(report.to_data() if report is not None and self.patch is None else None)

    def end_after(self, step: int) -> None:
        """Ends a copy that has come past the failing step."""
        if self.woken is not None and step > self.woken.last_step:
            self.end()

    def end(self) -> None:
        """Ends a copy that met nothing to the end of the failing step, or of the script."""
        if self.woken is not None:
            self.woken.send({"count": self.patch.count} if self.patch is not None else None)
