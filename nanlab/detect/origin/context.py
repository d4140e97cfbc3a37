"""Names an origin in the words of the program: which part of the step, which operation, which line."""

from __future__ import annotations

from torch import nn

from nanlab.detect.forms import function_of, known
from nanlab.detect.origin.slice import Origin, Slice
from nanlab.detect.trace.provenance import Event
from nanlab.detect.trace.trace import Trace

STATE = {"parameter": "weights", "buffer": "weights", "state": "optimizer_state", "grad": "gradient"}
LOSS_WORDS = ("loss", "nll", "elbo", "penalty", "objective", "criterion")


def where(trace: Trace, origin: Origin, found: Slice, sink: str) -> str:
    """Which part of the step made the value: one of `report.PLACES`."""
    event = origin.event
    if event.kind == "external":
        return STATE.get(event.source_kind) or ("input" if _enters_model(trace, origin, found) else "target")
    if event.phase == "backward" or (sink == "gradient" and event.phase == "forward" and not event.nan_birth):
        return "gradient"
    if event.phase == "optimizer" or (sink in ("weights", "optimizer_state") and not event.with_graph):
        return "optimizer_state" if event.writes.startswith("state") or sink == "optimizer_state" else "weights"
    if _in_model(trace, event):
        return "forward"
    later = (e for e in found.events if e.number > event.number and e.phase == "forward")
    return "forward" if any(_in_model(trace, e) for e in later) else "loss"


def _in_model(trace: Trace, event: Event) -> bool:
    """Whether `event` ran in the model proper: in one of its modules, but neither in a loss module or method nor in the
    last lines of a root whose forward returns the loss itself."""
    module = event.module
    if not isinstance(module, nn.Module) or not trace.program.paths.inside(module) or is_loss(module):
        return False
    if _in_loss_method(module, event):
        return False
    return not any(module is m and start < event.number <= end for m, start, end in trace.program.loss_spans)


def _in_loss_method(module: nn.Module, event: Event) -> bool:
    """Whether the line of `event` lies in a method of `module` that is named like a loss."""
    name = event.place.function if event.place is not None else ""
    return hasattr(type(module), name) and any(word in name.lower() for word in LOSS_WORDS)


def is_loss(module: nn.Module) -> bool:
    """Whether `module` is a loss: one of torch's, or named like one."""
    return isinstance(module, nn.modules.loss._Loss) or type(module).__name__.lower().endswith(("loss", "criterion"))


def _enters_model(trace: Trace, origin: Origin, found: Slice) -> bool:
    """Whether a bad tensor of the batch was fed to the model, rather than compared with what came out of it."""
    reader = origin.reader
    if reader is not None and (_in_model(trace, reader) or reader.with_graph):
        return _in_model(trace, reader)
    return any(_in_model(trace, e) for e in found.events if e.kind == "op" and e.phase == "forward")


def op_name(origin: Origin) -> str:
    """What the operation is called: ``softmax``, ``sqrt backward``, ``nan in batch[0]``."""
    event = origin.event
    if event.kind == "external":
        what = "nan" if event.counts.nan else "inf"
        named = "parameter" if event.source_kind == "parameter" else event.source
        return f"{what} in {named or 'a tensor made before'}"
    if event.node is not None and event.phase == "backward" and "::" not in event.node:
        function = function_of(event.node)
        own = function == event.node  # a custom function, whose backward is code of the program's
        inside = f"{function_of(event.op)} in " if own else ""
        return f"{inside}{function.removesuffix('Backward')} backward"
    if "scaled_dot_product" in event.op:
        return "scaled_dot_product_attention"
    call = event.call.name if event.call else ""
    if known(event.op).carries and call and not call.startswith("_"):
        return call
    return function_of(event.op)
