"""Where the program stands while it is watched: in which call, module and optimizer's step, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType

from torch import nn
from torch.autograd import _get_sequence_nr as next_number

from nanlab.detect.trace.calls import Calls
from nanlab.detect.trace.labels import Label, ModulePaths, Place, module_at, place_of, spot_of


class Program:
    """The counts only grow; the rest is what is going on at this moment."""

    def __init__(self, model: nn.Module | None) -> None:
        self.number = 0  # operations seen
        self.calls = 0  # functions seen
        self.step = 0  # optimizer steps that ended
        self.first_differentiable: int | None = None  # the first of the graph that grows; reset by who counts steps
        self.stack: list[Label] = []
        self.modules: list[nn.Module] = []
        self.callers: list[FrameType | None] = []  # the user's frames that called the backward engine
        self.optimizing = 0
        self.stepped_at: Place | None = None  # the line that last called an optimizer
        self.made = Calls()
        self.paths = ModulePaths(model)
        self.loss_spans: list[tuple[nn.Module, int, int]] = []  # a root that returns a loss, and its last lines
        self._last_inner = 0

    def run(self, name: str, frame: FrameType | None, func: Callable, args: tuple, kwargs: dict):
        """Runs a call of the program that stands at `frame`, and notes which graph nodes it made."""
        self.calls += 1
        module = module_at(frame, self.modules)
        label = Label(name, place_of(frame), module, self.calls, self.number + 1, spot_of(frame))
        self.stack.append(label)
        start = next_number()
        try:
            result = func(*args, **kwargs)
        finally:
            self.stack.pop()
        if self.first_differentiable is None and next_number() > start:
            self.first_differentiable = label.first_op
        self.made.note(start, label)
        return result

    def left(self, module: nn.Module, returns_loss: bool) -> None:
        """Notes that the forward pass of `module` ended."""
        while self.modules and self.modules.pop() is not module:
            pass  # a module whose forward raised, and was caught, left no other trace
        if self.modules:
            self._last_inner = self.number
        elif returns_loss:
            self.loss_spans.append((module, self._last_inner, self.number))

    def stopped(self) -> None:
        """Forgets what was going on."""
        self.stack.clear()
        self.modules.clear()
        self.optimizing = 0
