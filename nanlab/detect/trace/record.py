"""Turns an operation with a non-finite result into an event: what fed it, whether it was born here, what form it
has."""

from __future__ import annotations

import math
import sys

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

from nanlab.detect import forms
from nanlab.detect.state.values import Counts, bad_mask, count, is_numeric
from nanlab.detect.trace import underflow
from nanlab.detect.trace.labels import (
    Place,
    by_program,
    in_custom_backward,
    in_python,
    module_at,
    place_of,
    recomputing,
    spot_of,
    trail_of,
    user_frame,
)
from nanlab.detect.trace.provenance import Event, Parent
from nanlab.detect.trace.trace import Trace
from nanlab.detect.trace.underflow import graph_of


def record(trace: Trace, func, args, kwargs, outputs: list[Tensor], before: dict[int, Tensor],
           written: list[Tensor]) -> None:  # fmt: skip
    """Makes an event for every non-finite tensor among `outputs` and tags what they are stored in. `before` holds the
    old values of small operands that were overwritten, by ``id``; larger ones are lost."""
    trace.unscaled = trace.unscaled or func.__name__.startswith("_amp_foreach")
    lost = {id(t) for t in written if id(t) not in before}
    operands = _operands(func, args, kwargs)
    found = [_tagged(trace, n, t) if id(t) in lost else _parent(trace, n, t, before) for n, t in operands]
    parents = [parent for parent in found if parent is not None]
    scalars = [a for a in (*args, *kwargs.values()) if isinstance(a, float) and not math.isfinite(a)]
    if scalars and trace.last_scalar is not None:
        parents.append(Parent(trace.last_scalar, trace.last_scalar.counts, "scalar"))
    old_args, old_kwargs = tree_map(lambda a: before.get(id(a), a), (args, kwargs)) if before else (args, kwargs)
    lost_names = frozenset(n for n, t in operands if id(t) in lost)
    for out in outputs:
        counts = count(out) if is_numeric(out) else None
        if counts is None:
            continue
        event = _event(trace, func, out, counts, parents)
        event.with_graph = any(graph_of(t) is not None for _, t in operands)
        _births(event, func, out, parents, [t for _, t in operands if id(t) not in lost], before, scalars)
        if event.nan_birth or event.inf_birth:
            event.reading = forms.read(func, old_args, old_kwargs, out, nan=event.nan_birth, node=event.node,
                                       call=event.call.name if event.call else None, lost=lost_names)  # fmt: skip
            event.reading.form = underflow.refine(trace, event.reading.form, operands)
            event.magnitudes = trace.recent.magnitudes((t for _, t in operands), written, event.call)
        if written and event.phase == "optimizer":
            event.writes = " ".join(trace.sources.name(out))
        trace.tags.wrote(out, event)


def scalar_read(trace: Trace, t: Tensor) -> None:
    """Notes that the program took a non-finite Python number out of `t`, so that its later use can be traced back."""
    parent = _parent(trace, "self", t, {}) if by_program(sys._getframe(2)) else None
    if parent is not None:
        trace.last_scalar = parent.event


def looked_at(trace: Trace, t: Tensor) -> None:
    """Notes that the program asked whether `t` is finite, where it is not."""
    if not by_program(sys._getframe(2)):
        return
    with _disable_current_modes():
        parent = _parent(trace, "self", t, {}) if is_numeric(t) else None
    if parent is not None:
        trace.looked = parent.event


def _event(trace: Trace, func, out: Tensor, counts: Counts, parents: list[Parent]) -> Event:
    node, program = torch._C._current_autograd_node(), trace.program
    frame, optim = user_frame(sys._getframe(2))
    place, spot, module = place_of(frame), spot_of(frame), module_at(frame, program.modules)
    call, trail = program.stack[-1] if program.stack else None, trail_of(frame)
    phase = "optimizer" if program.optimizing and optim else "forward"
    if node is not None and not (recomputing(frame) and torch.is_grad_enabled()):
        phase, call = "backward", program.made.of(node)
        if call is not None and not in_python(frame, program.callers):
            place, spot, module, trail = call.place, call.spot, call.module, []
        elif call is not None and call.place is not None and in_custom_backward(frame, program.callers):
            module, trail = call.module, [(call.place.file, call.place.line), *trail]
    return Event(
        number=program.number, op=func.__name__.split(".")[0], phase=phase, step=program.step, counts=counts,
        shape=tuple(out.shape), dtype=out.dtype, place=place, module=module, call=call,
        node=node.name() if node is not None and phase == "backward" else None, parents=list(parents), spot=spot,
        trail=trail,
    )  # fmt: skip


def _births(event: Event, func, out: Tensor, parents: list[Parent], operands: list[Tensor], before: dict[int, Tensor],
            scalars: list[float]) -> None:  # fmt: skip
    """Marks what kind of event it is, and whether a NaN or an infinity was made here."""
    counts = event.counts
    if forms.known(event.op).unwritten:
        event.kind = "uninitialised"
    elif event.op == "lift_fresh":  # numbers become a tensor: the program's own, or an array's
        event.parents.clear()
        event.kind = "constant" if event.call is not None else "external"
        event.source = "data from outside torch"
    elif scalars and not parents and not _made_nan(counts, scalars):
        event.kind = "constant"
        if counts.nan and event.call is not None and not forms.known(event.call.name).fills:
            event.kind = "internal"  # torch.logdet and others choose NaN themselves: the choice is the origin
    else:
        event.nan_birth = bool(counts.nan) and not any(p.counts.nan for p in parents if p.event.kind != "internal")
        event.inf_birth = bool(counts.inf) and not any(p.counts.inf for p in parents)
        if torch.Tag.pointwise in getattr(func, "tags", ()) and parents:
            _fresh(event, out, [before.get(id(t), t) for t in operands])


def _made_nan(counts: Counts, scalars: list[float]) -> bool:
    """Whether a NaN appeared beside scalars that are only infinite."""
    return bool(counts.nan) and not any(s != s for s in scalars)


def _fresh(event: Event, out: Tensor, operands: list[Tensor]) -> None:
    """For an elementwise operation with bad operands: whether it also made a bad value where all of them are finite."""
    try:
        fed = torch.zeros(out.shape, dtype=torch.bool, device=out.device)
        for t in operands:
            fed |= bad_mask(t).to(out.device).expand(out.shape)
    except RuntimeError:
        return
    event.nan_birth |= bool((bad_mask(out, nan_only=True) & ~fed).any())
    event.inf_birth |= bool((bad_mask(out) & ~bad_mask(out, nan_only=True) & ~fed).any())


def _operands(func, args, kwargs) -> list[tuple[str, Tensor]]:
    """The tensors that were read, each under its argument's name; what was only overwritten is left out."""
    schema = getattr(func, "_schema", None)
    names = [a.name for a in schema.arguments] if schema is not None else []
    given = [*zip(names + ["?"] * len(args), args, strict=False), *kwargs.items()]
    base = func.__name__.split(".")[0]
    overwrites = base.endswith("_") and forms.known(base).overwrites
    found = []
    for name, value in given:
        if name == "out" or (name == "self" and overwrites):
            continue
        for t in value if isinstance(value, list | tuple) else [value]:
            if isinstance(t, Tensor) and is_numeric(t) and t.numel():
                found.append((name, t))
    return found


def _parent(trace: Trace, name: str, t: Tensor, before: dict[int, Tensor]) -> Parent | None:
    counts = count(before.get(id(t), t))
    if counts is None:
        return None
    events = trace.tags.of(t)
    return Parent(events[0] if events else external(trace, t, counts), counts, name)


def _tagged(trace: Trace, name: str, t: Tensor) -> Parent | None:
    """What a large operand held before it was overwritten can only be known from what wrote it."""
    events = trace.tags.of(t)
    return Parent(events[0], events[0].counts, name) if events else None


def external(trace: Trace, t: Tensor, counts: Counts) -> Event:
    """The event that stands for a tensor that no watched operation made."""
    kind, name = trace.sources.name(t)
    event = Event(
        number=trace.program.number, op="external", phase="", step=trace.program.step, counts=counts,
        shape=tuple(t.shape), dtype=t.dtype, place=None, module=None, call=None, node=None, kind="external",
        source=name, source_kind=kind,
        reader=trace.readers.of(t) or ((_stepping(trace), None) if kind == "state" else None),
    )  # fmt: skip
    trace.tags.wrote(t, event)
    return event


def _stepping(trace: Trace) -> Place | None:
    """The line that called an optimizer last, or, where none was called yet, is about to."""
    return trace.program.stepped_at or place_of(user_frame(sys._getframe(2))[0])
