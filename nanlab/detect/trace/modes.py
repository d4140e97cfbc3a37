"""The two modes of the tracer: one for what the user calls, one for what runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nanlab.detect import patching
from nanlab.detect.forms import Known, known
from nanlab.detect.state.values import WIDE, is_finite, is_numeric
from nanlab.detect.trace import underflow
from nanlab.detect.trace.labels import user_frame
from nanlab.detect.trace.record import looked_at, record, scalar_read
from nanlab.detect.trace.trace import Trace

SCALAR = torch.ops.aten._local_scalar_dense.default  # what .item() and float() run
TESTS = {"isnan", "isfinite", "isinf"}  # what a program asks of its loss
SMALL = 65_536  # elements; an in-place operand up to this size is copied first, so that its old values can be shown
_plans: dict[object, Plan] = {}


class Functions(TorchFunctionMode):
    """Sees the functions that the program calls, and the graph nodes that they make."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace, self.program = trace, trace.program

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, program = kwargs or {}, self.program
        name = getattr(func, "__name__", "")
        if self.trace.muted or name in ("__get__", "__set__") or (program.optimizing and not torch.is_grad_enabled()):
            return func(*args, **kwargs)  # attributes, and torch.optim's own arithmetic, need no label
        if name in TESTS and args and isinstance(args[0], Tensor):
            looked_at(self.trace, args[0])
        return program.run(name, user_frame(sys._getframe(1))[0], func, args, kwargs)


def keep_on_in_backward(mode: TorchFunctionMode, callers: list[FrameType | None]) -> Callable[[], None]:
    """Keeps `mode` on inside the backward engine, for the Python code that runs there: recomputed pieces of the forward
    pass, custom functions, hooks. (A mode is off while the function that it was asked about runs, here ``backward``.)
    While the engine runs, the user's frame that called it is the last of `callers`. Returns what ends it; does nothing
    where torch has no such entry to the engine."""

    @contextmanager
    def on():
        callers.append(user_frame(sys._getframe(1))[0])
        try:
            with nullcontext() if torch._C._len_torch_function_stack() else mode:
                yield
        finally:
            callers.pop()

    return patching.around_engine(on)


class Operations(TorchDispatchMode):
    """Sees every operation that runs, in forward, backward and the optimizer, and screens what it wrote."""

    supports_higher_order_operators = True

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace, self.program = trace, trace.program

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operation imports the compiler, and every later one passes through a wrapper

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        trace, program = self.trace, self.program
        if trace.muted or trace.quiet.looking_away:
            return func(*args, **kwargs)
        program.number += 1
        plan = _plans.get(func) or _plan(func)
        if trace.readers.waiting:
            trace.readers.note(args, program)
        if plan.skip or (plan.gentle and _is_gentle(args)):
            return func(*args, **kwargs)
        if func is SCALAR and not is_finite(args[0]):
            scalar_read(trace, args[0])
        written = _written(plan.mutated, args, kwargs) if plan.mutated else []
        before = {id(t): t.detach().clone() for t in written if is_numeric(t) and t.numel() <= SMALL}
        result = func(*args, **kwargs)
        outputs = [result] if isinstance(result, Tensor) else _tensors(result)
        if written:
            outputs += [t for t in written if all(t is not o for o in outputs)]
        bad = False
        for out in outputs:
            if is_numeric(out):
                if is_finite(out):
                    trace.tags.wrote(out, None)
                else:
                    bad = True
        if bad:
            record(trace, func, args, kwargs, outputs, before, written)
        elif plan.shrinks is not None and isinstance(result, Tensor):
            underflow.watch(trace, plan.shrinks, args, result)
        for out in outputs if written else outputs[:1]:
            trace.recent.note(out, func, args, program, shown=not bad and out is result)
        return result


def _tensors(tree: object) -> list[Tensor]:
    return [t for t in tree_leaves(tree) if isinstance(t, Tensor)]


class Plan(NamedTuple):
    """What is known of an operation before it runs: whether it makes no new values, the arguments that it writes to
    (position and name), its row of the table if it can round to zero, and whether it can do no harm with a small
    number."""

    skip: bool
    mutated: tuple[tuple[int, str], ...]
    shrinks: Known | None
    gentle: bool


def _plan(func) -> Plan:
    base = func.__name__.split(".")[0]
    row, schema = known(base), getattr(func, "_schema", None)
    skip = (bool(getattr(func, "is_view", False)) and base != "lift_fresh") or row.relabels
    mutated = tuple((i, a.name) for i, a in enumerate(schema.arguments if schema is not None else ())
                    if a.name in row.writes or (a.alias_info is not None and a.alias_info.is_write))  # fmt: skip
    shrinks = row if row.vanishes or row.epsilon else None
    plan = _plans[func] = Plan(skip, mutated, shrinks, base.endswith("_") and row.gentle)
    return plan


def _is_gentle(args: tuple) -> bool:
    """Whether an in-place product or sum is with a number of magnitude 1 at most, as optimizers make by the dozen: no
    value can turn bad in it, and what was bad keeps its tag."""
    return len(args) == 2 and type(args[1]) is float and abs(args[1]) <= 1.0 and args[0].dtype in WIDE


def _written(mutated, args, kwargs) -> list[Tensor]:
    out = []
    for position, name in mutated:
        value = args[position] if position < len(args) else kwargs.get(name)
        out += [value] if isinstance(value, Tensor) else _tensors(value)
    return out
