"""Reads the form of a bad result from the operation and its operands."""

from __future__ import annotations

from torch import Tensor

from nanlab.detect.forms import fused, optimizers, pointwise, products, reductions, storage  # noqa: F401 - the table
from nanlab.detect.forms.again import HALF, fits_wider, unexplained
from nanlab.detect.forms.derivatives import derivative
from nanlab.detect.forms.known import Rule, known
from nanlab.detect.forms.operation import Operation, Reading
from nanlab.detect.forms.optimizers import unpack


def read(func, args: tuple, kwargs: dict, out: Tensor, *, nan: bool, node: str | None = None, call: str | None = None,
         lost: frozenset[str] = frozenset()) -> Reading:
    """The form in which the first NaN (or, without `nan`, infinity) of `out` came about.

    `func` is the operation with its schema, `args` and `kwargs` what it was given, with old values for what it
    overwrote; `lost` names arguments whose old values are gone. Where no rule fits, the operation is run again; the
    form is ``"unknown"`` when that is finite.
    """
    schema = getattr(func, "_schema", None)
    names = [a.name for a in schema.arguments] if schema is not None else []
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    base = func.__name__.split(".")[0].rstrip("_")
    base, given = unpack(base, given, out)
    op = Operation(base, given, out, node, call, lost, nan)
    of_call = known(call).rule if base == "where" else None
    for step in (of_call, derivative if node else None, known(base).rule):
        reading = _try(step, op) if step is not None else None
        if reading is not None:
            if out.dtype in HALF:
                reading.fits_wider = fits_wider(func, args, kwargs, out)
            return reading
    form, said = unexplained(op, func, args, kwargs)
    return op.found(form, said, **(op.sizes() if op.at("self") is None else {}))


def _try(rule: Rule, op: Operation) -> Reading | None:
    """What `rule` says; None where the operands are of a kind that it was not written for (a layout without indexing,
    a dtype without comparison): a hunt must not end for want of a form."""
    try:
        return rule(op)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None
