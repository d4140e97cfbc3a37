"""From what went bad to a report: origin, form, place, suspect and lesson."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from nanlab import suspects
from nanlab.detect import forms
from nanlab.detect.origin.context import op_name, where
from nanlab.detect.origin.report import PLACES, Report, Target
from nanlab.detect.origin.slice import Origin, Slice, slice_back
from nanlab.detect.origin.suspicion import suspect_of
from nanlab.detect.state.nesting import named_leaves
from nanlab.detect.state.training import Optimizers
from nanlab.detect.state.values import count, is_numeric, largest
from nanlab.detect.trace.labels import Place, columns
from nanlab.detect.trace.provenance import Event
from nanlab.detect.trace.record import external
from nanlab.detect.trace.trace import Trace

UNSEEN = "No watched operation made it: it was there before the watch began, or came from outside torch."


def explain(trace: Trace, sink: str, bad: Sequence[Tensor | Event], *, step: int = 0, model: nn.Module | None = None,
            optimizer: Optimizers = None, batch: object = None) -> Report:  # fmt: skip
    """The report on `bad`, the tensors that went bad in `sink` (``"loss"``, ``"gradient"``, ``"weights"`` or
    ``"optimizer_state"``) while `trace` was taken. Finite tensors among them are passed over, an event stands for
    itself; `step` is the 0-based count of optimizer steps that the report gives. `model`, `optimizer` and `batch`
    name tensors that it was not told about."""
    trace.sources.learn(model, optimizer, batch)
    sinks = []
    for t in bad:
        if isinstance(t, Event):
            sinks.append(t)
        elif (counts := count(t)) is not None:
            sinks.append(next(iter(trace.tags.of(t)), None) or external(trace, t, counts))
    found = slice_back(sinks)
    if not found.origins:
        return Report("non-finite", step=step, where=sink if sink in PLACES else None, sink=sink, notes=[UNSEEN])
    return report_on(trace, found, sink, step)


def report_on(trace: Trace, found: Slice, sink: str, step: int) -> Report:
    """The report on the first origin of a slice."""
    origin = hidden(found, sink) or found.origins[0]
    event, at = origin.event, origin.at
    place = event.reader[0] if event.reader else at.place
    form = form_of(event)
    inputs = (t for _, t in named_leaves(trace.sources.batch, "batch") if is_numeric(t))
    slug = suspect_of(event, form, step == 0, max((largest(t) for t in inputs), default=0.0))
    return Report(
        "non-finite",
        step=step,
        where=where(trace, origin, found, sink),
        op=op_name(origin),
        file=place.file if place else None,
        line=place.line if place else None,
        module=module_of(trace, origin),
        form=forms.public(form),
        element=event.reading.element if event.reading else list(event.counts.element),
        suspect=slug,
        lesson=suspects.get(slug).lesson,
        operands=event.reading.operands if event.reading else {},
        magnitudes=event.magnitudes,
        node=event.node,
        shape=list(event.shape),
        counts=str(event.counts),
        sink=sink,
        columns=columns(at.spot) if event.reader is None else None,
        trail=at.trail if event.reader is None else [],
        target=target_of(at, place),
        notes=notes(event, found),
    )


def target_of(at: Event, place: Place | None) -> Target | None:
    """What a confirmation mends: the operation at `place`, or, of a custom function's backward, the call of the
    function."""
    called = at.call.place if at.call is not None and at.phase == "backward" else None
    place = called or place
    return Target(place, at.call.name if at.call else None, at.op) if place else None


def hidden(found: Slice, sink: str) -> Origin | None:
    """Where the loss is finite, a bad value of the forward pass was masked, and it is backward that brings it in: then
    the origin is the backward of the operation that made it. None where this is not the case."""
    event = found.origins[0].event
    if sink != "gradient" or event.kind != "op" or event.phase != "forward":
        return None
    backward = (e for e in found.events if e.phase == "backward" and e.nan_birth and e.place == event.place)
    return next((Origin(e) for e in backward), None)


def form_of(event: Event) -> str:
    """The form of an origin, from what it read or from what kind of origin it is."""
    if event.kind == "uninitialised":
        return "uninitialised memory"
    if event.kind == "constant":
        return "nan written" if event.counts.nan else "inf written"
    if event.reading is not None:
        return event.reading.form
    return "nan_in" if event.counts.nan else "inf_in"


def module_of(trace: Trace, origin: Origin) -> str:
    """The path of the module that the origin belongs to: the owner of a weight, else where the operation ran."""
    if origin.event.source_kind in ("parameter", "buffer", "state", "grad") and origin.event.kind == "external":
        return origin.event.source.split(" of ")[-1].rpartition(".")[0]
    if origin.event.phase == "optimizer":
        return origin.event.writes.split(" ")[-1].rpartition(".")[0]
    return trace.program.paths.path((origin.event.reader or (None, origin.at.module))[1])


def notes(event: Event, found: Slice) -> list[str]:
    """The evidence in sentences: what the form means, what came of it, where it was seen."""
    meaning = forms.sentence(form_of(event))
    lines = [f"{meaning[0].upper()}{meaning[1:]}."]
    if event.kind == "external" and event.source:
        lines.append(f"{event.source} was not finite before: {event.counts}, first at {list(event.counts.element)}.")
    if event.reading is not None and event.reading.note:
        lines.append(f"Here: {event.reading.note}.")
    then = next((e for e in found.events if e.number > event.number and e.nan_birth and e.reading), None)
    if then is not None and then.reading is not None and not event.counts.nan:
        at = f" at {then.place}" if then.place else ""
        lines.append(f"The first NaN came of it by {forms.public(then.reading.form)}{at}.")
    return lines
