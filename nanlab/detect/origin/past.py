"""Keeps what a step made apart from what was made before it: bad data is an input, not an operation of the step."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from nanlab.detect.forms import public
from nanlab.detect.origin.explain import form_of, report_on
from nanlab.detect.origin.report import Report
from nanlab.detect.origin.slice import slice_back
from nanlab.detect.trace.provenance import Event, Tags, storage_key
from nanlab.detect.trace.trace import Trace


class LayeredTags(Tags):
    """`Tags` that can be sealed: what was written before the last `seal` no longer counts as made by an operation, and
    is remembered for the note that says where it came from."""

    def __init__(self) -> None:
        super().__init__()
        self._past: dict[int, tuple] = {}
        self.came_from: dict[int, Event] = {}  # id of the event that read a bad tensor -> the event that made it

    def seal(self, before: int | None = None) -> None:
        """Turns everything written so far, or by operations up to number `before`, into the past; forgets what belongs
        to storages that are gone."""
        past = {key: held for key, held in self._held.items() if before is None or _all_before(held[1], before)}
        self._past |= past
        self._past = {key: held for key, held in self._past.items() if not _gone(held[0])}
        self._held = {key: held for key, held in self._held.items() if key not in past}

    def wrote(self, t: Tensor, event: Event | None) -> None:
        if event is not None and event.kind == "external" and (made := self._made(t)) is not None:
            self.came_from[id(event)] = made
        elif self._past:
            self._past.pop(storage_key(t), None)
        super().wrote(t, event)

    def _made(self, t: Tensor) -> Event | None:
        held = self._past.get(storage_key(t))
        return held[1][-1][0] if held else None

    def latest_number(self, since: int) -> Event | None:
        """The last operation since number `since` that made a 0-dim tensor which is alive and not finite."""
        alive = (event for weak, events in self._held.values() if not _gone(weak) for event, *_ in events)
        numbers = [e for e in alive if e.kind == "op" and e.shape == () and e.number >= since]
        return max(numbers, key=lambda e: e.number, default=None)

    def note_on(self, bad: list[Tensor]) -> str | None:
        """Where the input (or weight) that `bad` comes from was made, as a sentence; None when the step made it itself
        or nothing is known."""
        sinks = [event for t in bad for event in self.of(t)[:1]]
        for origin in slice_back(sinks).origins:
            made = self.came_from.get(id(origin.event))
            if made is not None:
                first = slice_back([made]).origins[0]
                event, at = first.event, first.reader or first.event
                if at.place is not None:
                    return (f"It was made before the step, by {at.op} at {Path(at.place.file).name}:{at.place.line} "
                            f"({public(form_of(event))}).")  # fmt: skip
        return None


def _all_before(entries: list, number: int) -> bool:
    return all(event.number < number for event, *_ in entries)


def _gone(weak: object) -> bool:
    expired = getattr(weak, "expired", None)
    return bool(expired()) if expired is not None else False


def read_by_script(trace: Trace, step: int, since: int, failed: str | None) -> Report | None:
    """The report on a non-finite number that the program looked at itself: one that stopped because of it (`failed`
    says how), or one that never calls backward. It is the last such number read out of a tensor (``item()``,
    ``float()``) since operation `since`, or, for a program that stopped, the last 0-dim result that is still alive.
    None where there is none, or only numbers that were written on purpose."""
    event = trace.last_scalar
    if event is not None and event.number < since:
        event = None
    if event is None and failed is not None and isinstance(trace.tags, LayeredTags):
        event = trace.tags.latest_number(since)
    if event is None:
        return None
    found = slice_back([event])
    if found.origins[0].event.kind != "op":
        return None
    report = report_on(trace, found, "loss", step)
    report.notes.append(failed or "The script read it out of a tensor; it called no backward.")
    return report
