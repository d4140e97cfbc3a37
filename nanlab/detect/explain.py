"""From what went bad to a report: origin, form, place, suspect and lesson."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from nanlab import suspects
from nanlab.detect.forms import FORMS
from nanlab.detect.origin import Origin, origins
from nanlab.detect.report import Report
from nanlab.detect.values import count

if TYPE_CHECKING:
    from nanlab.detect.tracer import Tracer


def explain(tracer: Tracer, sink: str, bad: list[Tensor], *, step: int = 0, model=None, optimizer=None, batch=None
            ) -> Report:
    """The report on `bad`, the tensors that went bad in `sink` (``"loss"``, ``"gradient"``, ``"weights"`` or
    ``"optimizer_state"``) while `tracer` watched. Finite tensors among them are passed over."""
    sinks = []
    for t in bad:
        counts = count(t)
        if counts is not None:
            events = tracer.tags.of(t)
            sinks += events[:1]
    found = origins(sinks)
    if not found:
        return Report("non-finite", step=step, where=sink, sink=sink, notes=["It was made before the watch began."])
    return _report(tracer, found[0], sink, step)


def _report(tracer: Tracer, origin: Origin, sink: str, step: int) -> Report:
    event = origin.event
    at = origin.reader or event
    form = event.finding.form if event.finding else "nan_in" if event.counts.nan else "inf_in"
    suspect = FORMS.get(form, FORMS["unknown"])[1]
    return Report(
        "non-finite",
        step=step,
        where=where(tracer, origin, sink),
        op=at.op,
        file=at.place.file if at.place else None,
        line=at.place.line if at.place else None,
        module=tracer.paths.path(at.module),
        form=form,
        element=list(event.counts.element),
        suspect=suspect,
        lesson=suspects.get(suspect).lesson,
        node=event.node,
        shape=list(event.shape),
        counts=str(event.counts),
        sink=sink,
    )


def where(tracer: Tracer, origin: Origin, sink: str) -> str:
    """Which part of the step made the value."""
    event = origin.event
    if event.kind == "external":
        return {"parameter": "weights", "buffer": "weights", "state": "optimizer_state", "grad": "gradient"}.get(
            event.source_kind, "input"
        )
    if event.phase == "backward":
        return "gradient"
    if event.phase == "optimizer":
        return "weights"
    return "forward" if tracer.paths.inside(event.module) else "loss"
