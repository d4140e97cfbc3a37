"""The one table of what is known of an operation: the rule that reads its form, and every other fact that the tool goes
by. A rule brings its operations' facts with it, so that an operation is added in one place.

A row answers to every spelling of a name: ``softmax``, ``_softmax`` and the graph node ``SoftmaxBackward0``; ``exp``,
``exp_`` and ``Exp``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from nanlab.detect.forms.operation import Operation, Reading

Rule = Callable[[Operation], Reading | None]


@dataclass(slots=True)
class Known:
    """What is known of one operation; the defaults hold for one that is not in the table."""

    rule: Rule | None = None
    shown: str = ""  # what a report calls it, where that is not its own name
    edge: str = ""  # where its derivative is not finite though its value is
    edge_of: str = ""  # the function that its derivative's form names
    deep: bool = False  # its derivative also fails in other operations than a division, root, power or logarithm
    exponential: bool = False  # overflows by growing exponentially
    vanishes: bool = False  # rounds to zero what is not zero
    keeps_zero: bool = False  # makes zero of zero without rounding
    epsilon: bool = False  # how an epsilon is added
    probability: bool = False  # its result is one, and underflows where it is small
    masks: bool = False  # a mask of −inf is made for it
    divides: bool = False  # by an argument that may be an integer
    square: bool = False  # wants a square matrix with an inverse
    safe: float = 0.5  # inside its domain, and no divisor to fear
    counts: str = ""  # fails by how many "elements", "targets" or "frames" there are, not by their values
    fills: bool = False  # writes what it is told to, as a call of the program
    carries: bool = False  # places values that others made: the program's call says what for
    unwritten: bool = False  # gives memory as it was
    overwrites: bool = False  # in place, it does not read what it writes to
    relabels: bool = False  # makes no new values
    gentle: bool = False  # in place with a number of magnitude 1 at most, it makes nothing bad
    writes: tuple[str, ...] = ()  # arguments that it writes to though its schema does not say so


KNOWN: dict[str, Known] = {}
_UNKNOWN = Known()


def key(name: str) -> str:
    """What all spellings of an operation's name have in common."""
    return name.replace("_", "").lower()


def known(name: str | None) -> Known:
    """What is known of the operation, function or graph node called `name`."""
    return KNOWN.get(key(re.sub(r"Backward\w*$", "", name or "")), _UNKNOWN)


def note(*names: str, **facts: object) -> None:
    """Notes `facts` (fields of `Known`) of the operations called `names`, with those noted before."""
    for name in names:
        row = KNOWN.setdefault(key(name), Known(edge_of=name.strip("_").removeprefix("linalg_")))
        for fact, value in facts.items():
            setattr(row, fact, value)


def rule(*names: str, **facts: object) -> Callable[[Rule], Rule]:
    """Registers a function as the rule of the operations called `names`, and notes `facts` of them."""

    def register(function: Rule) -> Rule:
        for name in names:
            if (old := known(name).rule) is not None and old is not function:
                raise ValueError(f"{name} already has a rule: {getattr(old, '__name__', old)}")
            note(name, rule=function, **facts)
        return function

    return register
