"""Walks back from what went bad to the operation that made the first non-finite value it depends on.

A −inf written on purpose, an infinity that is replaced before use and a NaN that is overwritten lie on no such path, which
is why none of them is ever reported; a list of allowed operations could not tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanlab.detect.provenance import Event

DELIBERATE = {"constant"}


@dataclass(frozen=True)
class Origin:
    """An operation (or a tensor that was already bad) from which the bad result comes. `reader` is the first operation
    that read it, for tensors that were already bad."""

    event: Event
    reader: Event | None = None


def origins(sinks: list[Event]) -> list[Origin]:
    """The origins of `sinks`, the earliest operation first; constants only where nothing else explains the value."""
    found: dict[int, Origin] = {}
    seen: set[tuple[int, bool]] = set()
    todo = [(event, bool(event.counts.nan), None) for event in sinks]
    while todo:
        event, nan, reader = todo.pop()
        if (id(event), nan) in seen:
            old = found.get(id(event))
            if old and old.reader and reader and reader.number < old.reader.number:
                found[id(event)] = Origin(event, reader)
            continue
        seen.add((id(event), nan))
        if event.kind != "op":
            found[id(event)] = Origin(event, reader)
            continue
        if (event.nan_birth if nan else event.inf_birth) and not _explained(event):
            found[id(event)] = Origin(event)
        todo += _causes(event, nan)
    real = [o for o in found.values() if o.event.kind not in DELIBERATE]
    return sorted(real or found.values(), key=lambda o: (o.reader or o.event).number)


def _causes(event: Event, nan: bool) -> list[tuple[Event, bool, Event]]:
    """The operands that explain a NaN (or an infinity) in the result of `event`."""
    if nan and any(p.counts.nan for p in event.parents):
        return [(p.event, True, event) for p in event.parents if p.counts.nan]
    return [(p.event, False, event) for p in event.parents if p.counts.inf]


def _explained(event: Event) -> bool:
    """Whether a NaN born from infinities is the fault of what made those, and not of this operation."""
    return any(p.counts.inf and not deliberate(p.event) for p in event.parents)


def deliberate(event: Event, depth: int = 200) -> bool:
    """Whether the infinities of `event` were all written on purpose."""
    todo, seen = [event], set()
    while todo:
        e = todo.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if e.kind == "constant" or (e.kind == "external" and e.source_kind in ("buffer",)):
            continue
        if e.kind != "op" or e.inf_birth:
            return False
        todo += [p.event for p in e.parents if p.counts.inf]
    return True
