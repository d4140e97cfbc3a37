"""Turns an operation with a non-finite result into an event: what fed it, whether it was born here, what form it has."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten_with_path

from nanlab.detect import forms
from nanlab.detect.labels import KEY, place_of, user_frame
from nanlab.detect.provenance import Event, Parent
from nanlab.detect.values import Counts, count, is_numeric

if TYPE_CHECKING:
    from nanlab.detect.tracer import Tracer

UNWRITTEN = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}


def record(tracer: Tracer, func, args, kwargs, outputs: list[Tensor], before: dict[int, Tensor],
           written: list[Tensor]) -> None:
    """Makes an event for every non-finite tensor among `outputs` and tags what they are stored in. `before` holds the
    old values of small operands that were overwritten, by ``id``."""
    lost = {id(t) for t in written if id(t) not in before}
    operands = _operands(func, args, kwargs)
    found = [_tagged(tracer, n, t) if id(t) in lost else _parent(tracer, n, t, before) for n, t in operands]
    parents = [parent for parent in found if parent is not None]
    scalars = [a for a in _scalars(args, kwargs) if not math.isfinite(a)]
    if scalars and not parents and tracer.last_scalar is not None:
        parents.append(Parent(tracer.last_scalar, tracer.last_scalar.counts, "scalar"))
    old = tuple(before.get(id(a), a) if isinstance(a, Tensor) else a for a in args)
    for out in outputs:
        counts = count(out) if is_numeric(out) else None
        if counts is None:
            continue
        event = _event(tracer, func, out, counts, parents)
        _births(event, func, out, counts, parents, scalars)
        if event.nan_birth or event.inf_birth:
            event.finding = forms.read(func, old, kwargs, out, counts, event)
            event.magnitudes = tracer.magnitudes()
        if written:
            event.writes = " ".join(tracer.sources.name(out)) if event.phase == "optimizer" else ""
        tracer.tags.wrote(out, event)


def _event(tracer: Tracer, func, out: Tensor, counts: Counts, parents: list[Parent]) -> Event:
    node = torch._C._current_autograd_node()
    frame, optim = user_frame(sys._getframe(2))
    phase = "backward" if node is not None else "optimizer" if tracer.optimizing and optim else "forward"
    call = node.metadata.get(KEY) if node is not None else tracer.stack[-1] if tracer.stack else None
    place = place_of(frame)
    module = tracer.modules[-1] if tracer.modules else None
    if node is not None and call is not None:
        place, module = call.place, call.module
    return Event(
        number=tracer.number, op=func.__name__.split(".")[0], phase=phase, step=tracer.step, counts=counts,
        shape=tuple(out.shape), dtype=out.dtype, place=place, module=module, call=call,
        node=node.name() if node is not None else None, parents=list(parents),
    )  # fmt: skip


def _births(event: Event, func, out: Tensor, counts: Counts, parents: list[Parent], scalars: list[float]) -> None:
    if event.op in UNWRITTEN:
        event.kind = "uninitialised"
    elif scalars and not parents and not (counts.nan and not any(s != s for s in scalars)):
        event.kind = "constant"
    else:
        event.nan_birth = bool(counts.nan) and not any(p.counts.nan for p in parents)
        event.inf_birth = bool(counts.inf) and not any(p.counts.inf for p in parents)


def _operands(func, args, kwargs) -> list[tuple[str, Tensor]]:
    """The tensors that were read, each under its argument's name; what was only overwritten is left out."""
    schema = getattr(func, "_schema", None)
    names = [a.name for a in schema.arguments] if schema is not None else []
    leaves, _ = tree_flatten_with_path((args, kwargs))
    found = []
    for path, leaf in leaves:
        if isinstance(leaf, Tensor) and is_numeric(leaf) and leaf.numel():
            key = path[1].idx if hasattr(path[1], "idx") else path[1].key
            name = key if isinstance(key, str) else names[key] if key < len(names) else str(key)
            if not (name == "self" and func.__name__.split(".")[0] in ("copy_", "fill_", "zero_")):
                found.append((name, leaf))
    return found


def _parent(tracer: Tracer, name: str, t: Tensor, before: dict[int, Tensor]) -> Parent | None:
    counts = count(before.get(id(t), t))
    if counts is None:
        return None
    events = tracer.tags.of(t)
    event = events[0] if events else _external(tracer, t, counts)
    return Parent(event, counts, name)


def _tagged(tracer: Tracer, name: str, t: Tensor) -> Parent | None:
    """What a large operand held before it was overwritten can only be known from what wrote it."""
    events = tracer.tags.of(t)
    return Parent(events[0], events[0].counts, name) if events else None


def _external(tracer: Tracer, t: Tensor, counts: Counts) -> Event:
    kind, name = tracer.sources.name(t)
    event = Event(
        number=tracer.number, op="external", phase="", step=tracer.step, counts=counts, shape=tuple(t.shape),
        dtype=t.dtype, place=None, module=None, call=None, node=None, kind="external", source=name, source_kind=kind,
    )  # fmt: skip
    tracer.tags.wrote(t, event)
    return event


def _scalars(args, kwargs) -> list[float]:
    return [a for a in (*args, *kwargs.values()) if isinstance(a, float)]
