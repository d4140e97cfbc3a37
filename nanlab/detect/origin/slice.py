"""Walks back from what went bad to the operation that made the first non-finite value it depends on.

A −inf written on purpose, an infinity that is replaced before use and a NaN that is overwritten lie on no such path,
which is why none of them is ever reported; a list of allowed operations could not tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nanlab.detect.forms import known
from nanlab.detect.trace.provenance import Event


@dataclass
class Origin:
    """An operation, or a tensor that was already bad (then `reader` is the first operation that read it), from which
    the bad result comes."""

    event: Event
    reader: Event | None = None

    @property
    def at(self) -> Event:
        """The event whose line is the origin's: its own, or its reader's where nothing is known of its making."""
        return self.event if self.event.place is not None or self.reader is None else self.reader

    @property
    def number(self) -> int:
        return self.at.number


@dataclass
class Slice:
    """What lies between the origins and the bad result: `origins` the earliest first, `events` in order."""

    origins: list[Origin] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


def slice_back(sinks: list[Event]) -> Slice:
    """Everything that the non-finite values of `sinks` depend on.

    A NaN is followed through the operands that hold a NaN, else through those that hold an infinity. What was written
    on purpose is an origin only where nothing else explains the value.
    """
    found: dict[int, Origin] = {}
    seen: dict[tuple[int, bool], Event] = {}
    todo: list[tuple[Event, bool, Event | None]] = [(e, bool(e.counts.nan), None) for e in reversed(sinks)]
    while todo:
        event, nan, reader = todo.pop()
        if event.kind not in ("op", "internal"):
            _note(found, event, reader)
        if (id(event), nan) in seen:
            continue
        seen[id(event), nan] = event
        if event.kind == "op" and (event.nan_birth if nan else event.inf_birth) and not _explained(event):
            _note(found, event, None)
        todo += _causes(event, nan)
    real = [o for o in found.values() if not _on_purpose(o)]
    events = sorted({id(e): e for e in seen.values()}.values(), key=lambda e: e.number)
    return Slice(sorted(real or found.values(), key=lambda o: o.number), events)


def _note(found: dict[int, Origin], event: Event, reader: Event | None) -> None:
    old = found.get(id(event))
    if old is None or (reader is not None and old.reader is not None and reader.number < old.reader.number):
        found[id(event)] = Origin(event, reader)


def _causes(event: Event, nan: bool) -> list[tuple[Event, bool, Event | None]]:
    """The operands that explain a NaN (or an infinity) in the result of `event`."""
    reader = event if event.kind == "op" else None
    if event.kind == "internal":
        return []
    if nan and any(p.counts.nan for p in event.parents):
        return [(p.event, True, reader) for p in event.parents if p.counts.nan]
    return [(p.event, False, reader) for p in event.parents if p.counts.inf]


def _explained(event: Event) -> bool:
    """Whether a NaN born from infinities is the fault of what made those, and not of this operation."""
    return any(p.counts.inf and not deliberate(p.event, event) for p in event.parents)


def _on_purpose(origin: Origin) -> bool:
    event = origin.event
    return event.kind == "constant" or (event.kind == "external" and _holds_only_minus_infinity(event))


def _holds_only_minus_infinity(event: Event) -> bool:
    return not event.counts.nan and not event.counts.posinf


def is_mask(event: Event, birth: Event) -> bool:
    """Whether a tensor that was already infinite is a mask: it holds −inf alone, and is a buffer, or met the operation
    that it is made for, or did no harm before the backward pass. A −inf in the data would have spoilt the loss."""
    if event.kind != "external" or not _holds_only_minus_infinity(event):
        return False
    return event.source_kind == "buffer" or birth.phase == "backward" or known(birth.op).masks


def deliberate(event: Event, birth: Event) -> bool:
    """Whether the infinities of `event` that met in `birth` were all written on purpose."""
    todo, seen = [event], set()
    while todo:
        e = todo.pop()
        if id(e) in seen or e.kind == "constant" or is_mask(e, birth):
            continue
        seen.add(id(e))
        if e.kind != "op" or e.inf_birth:
            return False
        todo += [p.event for p in e.parents if p.counts.inf]
    return True
