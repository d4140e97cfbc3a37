"""Which call of the program made a node of the graph.

Autograd numbers its nodes in the order in which they are made. The number before a call and the number after it are all
that has to be kept: a node that runs in backward lies between those of the call that made it, long after the Python
frame is gone. (A label in ``grad_fn.metadata`` does the same at ten times the cost, since it makes every node of the
graph a Python object.)
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from torch.autograd import _get_sequence_nr as next_number

from nanlab.detect.trace.labels import Label

MOST = 200_000  # calls remembered; a graph seldom lives longer than its step


class Calls:
    """The numbers of the nodes that each call made. Calls are noted as they end, so inner ones come before outer
    ones."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._labels: list[Label] = []

    def note(self, start: int, label: Label) -> None:
        """Notes that the call of `label`, which began when `next_number` was `start`, has just ended."""
        end = next_number()
        if end > start:
            self._starts.append(start)
            self._ends.append(end)
            self._labels.append(label)
            if len(self._ends) > MOST:
                for held in (self._starts, self._ends, self._labels):
                    del held[: MOST // 2]

    def of(self, node: Any) -> Label | None:
        """The innermost call that made `node`; None for a node from before the watch began, and for the nodes that
        only add a gradient up."""
        number = node._sequence_nr()
        for i in range(bisect_right(self._ends, number), len(self._ends)):
            if self._starts[i] <= number:
                return self._labels[i]
        return None
