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
from nanlab.detect.scripts.ending import Ending
from nanlab.detect.scripts.scriptwatch import ScriptWatch

UNREAD = "what the script computed outside its optimizer steps (the guard looks at steps alone)"
STOPPED = "what would have come after the interruption"


@dataclass
class Outcome:
    """What a script's run gave: the report, the mode it was found in, the script's own status, and its traceback when
    it failed by itself. `not_watched` names what a finite verdict does not speak of."""

    report: Report
    mode: str = ""
    status: int = 0
    traceback: str | None = None
    steps: int = 0
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)
    not_watched: list[str] = field(default_factory=list)
    skipped_steps: list[int] = field(default_factory=list)

    @property
    def found(self) -> bool:
        return self.report.verdict != "finite"

    def to_json(self) -> dict[str, object]:
        """The report's JSON, with how it was found."""
        rest = ("mode", "steps", "status", "interrupted", "not_watched", "skipped_steps")
        return {**self.report.to_json(), **{name: getattr(self, name) for name in rest}}


def hunt_script(
    target: Path | str, args: Sequence[str] = (), *, every_step: bool = False, from_step: int = 0,
    stop_at_skips: bool = False, scene: Scene | None = None,
) -> Outcome:  # fmt: skip
    """Runs a script (a path), or a module (its dotted name) as ``python -m`` does, once, and finds the first non-finite
    value that reaches a loss, a gradient, the weights or the optimizer state, or that the script reads or ends for.

    The script is hunted from its first line. Once two seconds have gone into hunted steps, a few are compared with
    plain ones, and where a hunted step costs over 1.5 of those the guard takes over, with a stopped copy of the
    process every ten steps that runs the failing steps again (Linux, CPU). With `scene`, the script's first batch is
    the scene's. An interruption ends the script, and what is known then is returned.
    """
    watch = ScriptWatch(every_step, from_step, stop_at_skips)
    stage = Staging(scene) if scene is not None else None
    error: BaseException | None = None
    status = 0
    try:
        with watch, stage or contextlib.nullcontext():
            try:
                status = script.run(target, args, lambda status: watch.ended(_exited(status)))
                ending = Ending()
            except (script.Stopped, NonFiniteError) as stop:
                error, ending = stop, None
            except KeyboardInterrupt as stop:
                error, ending = stop, Ending()
            except BaseException as failed:
                error = failed
                ending = Ending(f"The script stopped itself: {type(failed).__name__}: {failed}", failed)
            watch.ended(ending)
    finally:
        sys.stdout.flush()
    return _outcome(watch, error, status, stage)


def _exited(status: int) -> Ending:
    return Ending(f"The script ended itself with exit status {status}." if status else None)


def _outcome(watch: ScriptWatch, error: BaseException | None, status: int, stage: Staging | None) -> Outcome:
    report = watch.found or Report("finite")
    if isinstance(error, NonFiniteError) and watch.found is None:
        report = error.report
    outcome = Outcome(report, _mode(watch), status, steps=watch.steps, skipped_steps=watch.skips.steps)
    outcome.interrupted = isinstance(error, KeyboardInterrupt)
    outcome.notes += [str(watch.skips)] if watch.skips.steps else []
    outcome.not_watched = _not_watched(watch, outcome.interrupted)
    if stage is not None:
        outcome.notes += stage.said
        if not outcome.found:
            outcome.report = Report("not-reproduced", step=stage.scene.step, notes=["The scene's step stayed finite."])
        elif report.step is not None and report is watch.found:
            report.step += stage.scene.step
    if error is not None and not isinstance(error, (script.Stopped, NonFiniteError, KeyboardInterrupt)):
        outcome.traceback = script.traceback_of(error)
    return outcome


def _not_watched(watch: ScriptWatch, interrupted: bool) -> list[str]:
    missed = [UNREAD] if watch.left_to_guard else []
    missed += [f"the first {watch.from_step} steps"] if watch.from_step else []
    missed += [str(watch.children)] if str(watch.children) else []
    return missed + ([STOPPED] if interrupted else [])


def _mode(watch: ScriptWatch) -> str:
    """How the script was watched, as a sentence."""
    if watch.from_step:
        return f"hunted from step {watch.from_step}"
    ratio = watch.pace.ratio
    if watch.left_to_guard:
        return (f"guarded with {watch.copies.snapshots.taken} snapshots, every {watch.copies.snapshots.every} steps: "
                f"hunting costs {ratio:.1f} of a plain step")  # fmt: skip
    if watch.why_no_snapshots:
        return f"hunted every step: {watch.why_no_snapshots}"
    return "hunted from the first line" + (f", at {ratio:.1f} of a plain step" if ratio else "")
