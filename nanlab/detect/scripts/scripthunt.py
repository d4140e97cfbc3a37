"""The whole of ``nanlab hunt SCRIPT``: run it under watch, and say what happened and how it was found."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nanlab.detect.origin.report import NonFiniteError, Report
from nanlab.detect.replay.scene import Scene
from nanlab.detect.replay.staging import Staging
from nanlab.detect.scripts import script
from nanlab.detect.scripts.scriptwatch import ScriptWatch


@dataclass
class Outcome:
    """What a script's run gave: the report, the mode it was found in, the script's own status, and its traceback when
    it failed by itself."""

    report: Report
    mode: str = ""
    status: int = 0
    traceback: str | None = None
    steps: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def found(self) -> bool:
        return self.report.verdict != "finite"

    def to_json(self) -> dict[str, object]:
        """The report's JSON, with how it was found."""
        return {**self.report.to_json(), "mode": self.mode, "steps": self.steps}


def hunt_script(
    path: Path, args: Sequence[str] = (), *, every_step: bool = False, from_step: int = 0, scene: Scene | None = None
) -> Outcome:
    """Runs the script at `path` once and finds the first non-finite value that reaches a loss, a gradient, the weights
    or the optimizer state. KeyboardInterrupt passes through.

    The script is hunted from its first line. Once two seconds have gone into hunted steps, a few are compared with
    plain ones, and where a hunted step costs over 1.5 of those the guard takes over, with a stopped copy of the
    process every ten steps that runs the failing steps again (Linux, CPU). With `scene`, the script's first batch is
    the scene's.
    """
    watch = ScriptWatch(every_step, from_step)
    stage = Staging(scene) if scene is not None else None
    error: BaseException | None = None
    status = 0
    try:
        with watch, stage or contextlib.nullcontext():
            try:
                status = script.run(path, args, watch.exited)
            except (script.Stopped, KeyboardInterrupt, NonFiniteError) as stop:
                error = stop
            except BaseException as failed:
                error = failed
                watch.stopped_itself(f"The script stopped itself: {type(failed).__name__}: {failed}")
            finally:
                watch.at_end()
            if error is None and not watch.backwards:
                watch.stopped_itself(None)
    finally:
        sys.stdout.flush()
    if isinstance(error, KeyboardInterrupt) and watch.found is None:
        raise error
    return _outcome(watch, error, status, stage)


def _outcome(watch: ScriptWatch, error: BaseException | None, status: int, stage: Staging | None) -> Outcome:
    report = watch.found or Report("finite")
    if isinstance(error, NonFiniteError) and watch.found is None:
        report = error.report
    outcome = Outcome(report, _mode(watch), status, steps=watch.steps)
    if stage is not None:
        outcome.notes += stage.said
        if not outcome.found:
            outcome.report = Report("not-reproduced", step=stage.scene.step, notes=["The scene's step stayed finite."])
        elif report.step is not None and report is watch.found:
            report.step += stage.scene.step
    if error is not None and not isinstance(error, (script.Stopped, NonFiniteError, KeyboardInterrupt)):
        outcome.traceback = script.traceback_of(error)
    return outcome


def _mode(watch: ScriptWatch) -> str:
    """How the script was watched, as a sentence."""
    if watch.from_step:
        return f"hunted from step {watch.from_step}"
    ratio = watch.pace.ratio
    if watch.copies.snapshots.taken and watch.pace.decided and watch.pace.mode == "plain":
        return (f"guarded with {watch.copies.snapshots.taken} snapshots, every {watch.copies.snapshots.every} steps: "
                f"hunting costs {ratio:.1f} of a plain step")  # fmt: skip
    if watch.why_no_snapshots:
        return f"hunted every step: {watch.why_no_snapshots}"
    return "hunted from the first line" + (f", at {ratio:.1f} of a plain step" if ratio else "")
