"""Notices zeros that are the remains of small numbers, and says of a zero divisor whether it came from one.

A finite result has no event, so the trail is the graph: calls that rounded to zero are noted by number, and the nodes
behind a zero divisor carry the numbers of the calls that made them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nanlab.detect.forms import Known, known
from nanlab.detect.trace.calls import Calls
from nanlab.detect.trace.trace import Trace

HALF_OF_LEAST = 2.98e-8  # half of fp16's least subnormal number, 2**-24: what is smaller rounds to 0
MOST = 100_000  # calls remembered: more than a step has
DEPTH = 24  # nodes to look back through
DIVISORS = ("other", "tensor2", "self")


def watch(trace: Trace, row: Known, args: tuple, out: Tensor) -> None:
    """Notes the call that runs now, of an operation with the facts `row`, when `out` holds a zero that came of a finite
    nonzero operand."""
    x = args[0]
    if not trace.program.stack or not isinstance(x, Tensor) or not out.is_floating_point():
        return
    if row.epsilon:
        small = [a for a in args[1:] if isinstance(a, float) and a] if out.dtype is torch.float16 else []
        gone = any(abs(a) < HALF_OF_LEAST for a in small)
    else:
        some = x != 0 if row.keeps_zero else x.isfinite()
        gone = x.shape == out.shape and bool(((out == 0) & some).any())
    if gone:
        if len(trace.vanished) > MOST:
            trace.vanished.clear()
        trace.vanished.add(trace.program.stack[-1].call)


def refine(trace: Trace, form: str, operands: list[tuple[str, Tensor]]) -> str:
    """`form`, narrowed down where its zero is what is left of an underflow."""
    if form not in ("0/0", "x/0", "log(0)"):
        return form
    operand = next((t for name in DIVISORS for n, t in operands if n == name), None)
    node = graph_of(operand) if operand is not None else None
    if node is None:
        return form
    probability = form == "log(0)" and known(type(node).__name__).probability
    if not probability and not (trace.vanished and _behind(node, trace.program.made, trace.vanished)):
        return form
    return {"0/0": "0/0 (underflow)", "x/0": "x/0: underflow"}.get(form, "log(0): underflow")


def graph_of(t: Tensor) -> Any:
    """The graph node that made `t`; None for a leaf, and for a view of what was changed in place since (there torch
    raises)."""
    try:
        return t.grad_fn
    except RuntimeError:
        return None


def _behind(node, made: Calls, calls: set[int]) -> bool:
    """Whether one of `calls` made a node at most `DEPTH` nodes behind `node`."""
    todo, seen = [node], set[Any]()
    while todo and len(seen) < DEPTH:
        node = todo.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        label = made.of(node)
        if label is not None and label.call in calls:
            return True
        todo += [following for following, _ in node.next_functions]
    return False
