"""Reads the form from an operation's name and the operands at its first bad element."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Finding:
    """A form, with the operands' values at the element where it was read."""

    form: str
    element: tuple[int, ...]
    operands: dict[str, object] = field(default_factory=dict)
    note: str = ""


def read(func, args, kwargs, out, counts, event) -> Finding:
    """The form of the first bad element of `out`."""
    return Finding("unknown", counts.element)
