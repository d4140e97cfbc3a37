"""How a script ended, and whether a number that is not finite was why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

from torch import Tensor

from nanlab.detect.origin.report import Report
from nanlab.detect.scripts.stephunt import StepHunt
from nanlab.detect.state.values import is_finite, is_numeric
from nanlab.detect.trace.provenance import Event

CHECKS = (ValueError, RuntimeError, ArithmeticError, AssertionError)  # what code that checks its numbers raises
READ = "The script read it out of a tensor; no step of the training depends on it."
ASKED = "The script asked whether it is finite, and made no step after that."


@dataclass
class Ending:
    """`how` is a sentence where the script ended by itself before its end (an exception, an exit status), else None."""

    how: str | None = None
    error: BaseException | None = None

    @property
    def by_itself(self) -> bool:
        return self.how is not None

    def report(self, hunt: StepHunt, steps: int, backward: bool) -> Report | None:
        """The report on the number that the script ended for, or read at any time; None where there is none, or only
        what was written on purpose."""
        for candidates, note in self._found(hunt, backward):
            for bad in candidates:
                report = hunt.explain("loss", [bad], steps)
                if hunt.is_made(bad):
                    report.step = hunt.step_of(bad, steps)
                    report.notes.append(self.how or note)
                    return report
        return None

    def _found(self, hunt: StepHunt, backward: bool) -> Iterator[tuple[list, str]]:
        asked = hunt.asked()
        if self.by_itself:
            yield [e for e in (asked, hunt.read(in_step=True)) if e is not None], ""
            yield _held_by(self.error) if isinstance(self.error, CHECKS) else [], ""
            yield [e for e in (hunt.alive(),) if e is not None], ""
            return
        if asked is not None and _is_number(asked) and (asked.with_graph or asked.counts.nan):
            yield [asked], ASKED
        read = hunt.read(in_step=False)
        if read is not None and (read.counts.nan or not backward):
            yield [read], READ


def _is_number(event: Event) -> bool:
    return event.shape == ()


def _held_by(error: BaseException | None) -> list[Tensor]:
    """The bad tensors in the variables of the frames that `error` passed through, the innermost first."""
    frames, trace = [], error.__traceback__ if error is not None else None
    while isinstance(trace, TracebackType):
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    held = [t for frame in reversed(frames) for t in frame.f_locals.values() if isinstance(t, Tensor)]
    return [t for t in held if is_numeric(t) and not is_finite(t)]
