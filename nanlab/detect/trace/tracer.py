"""Watches every operation of a piece of training: which made a non-finite value, where it stands, what fed it.

Two modes work together. A function mode sees what the user called and from which line; a dispatch mode sees every
operation that runs, also in backward and in the optimizer. Views are skipped and results are screened by a sum, which
is what keeps it near the cost of a plain step. Taught in lesson 09_step_12001.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable

from torch import Tensor, nn

from nanlab.detect.state.training import TrainingState
from nanlab.detect.state.values import Counts
from nanlab.detect.trace.attach import attach
from nanlab.detect.trace.calls import Calls
from nanlab.detect.trace.labels import Label, ModulePaths, Place, module_at, place_of, user_frame
from nanlab.detect.trace.modes import Functions, Operations, keep_on_in_backward
from nanlab.detect.trace.provenance import Event, Tags, storage_key
from nanlab.detect.trace.quiet import Quiet
from nanlab.detect.trace.recent import Recent
from nanlab.detect.trace.record import external

LOSSES = 4  # the latest losses are kept, no more: each holds a graph


class Tracer:
    """Context manager that records where non-finite values come from while it is open.

    With `model`, module paths and parameters are named by it; `optimizer` names the optimizer's state; `batch` (any
    nesting of tensors) names the inputs. `losses` holds what `backward` was last called on. Attributes `on_backward`
    and `on_optimizer` may be set to callables; each is called before the graph or the step runs, and may raise.
    An optimizer's step that cannot make a bad value, by `quiet.harmless`, is not looked into.
    Without `operations` it only follows backward, optimizers and modules, at next to no cost.
    Not reentrant; detaches itself whatever happens inside.
    """

    def __init__(self, model: nn.Module | None = None, optimizer: object = None, batch: object = None,
                 operations: bool = True) -> None:  # fmt: skip
        self.operations = operations
        self.paths = ModulePaths(model)
        self.sources = TrainingState(model, optimizer, batch)
        self.tags = Tags()
        self.number = 0  # operations seen
        self.first_differentiable: int | None = None  # the first of the graph that grows; reset by who counts steps
        self.calls = 0  # functions seen
        self.step = 0  # optimizer steps that ended
        self.losses: deque[Tensor] = deque(maxlen=LOSSES)
        self.muted = False  # set to True, nothing more is recorded
        self.quiet = Quiet()
        self.hushed = False  # whether the next optimizer step needs no watching; set by on_optimizer
        self.on_backward: Callable[[list[Tensor]], None] | None = None
        self.on_optimizer: Callable[[object], None] | None = None
        self.stack: list[Label] = []
        self.modules: list[nn.Module] = []
        self.loss_spans: list[tuple[nn.Module, int, int]] = []  # a root that returns a loss, and its last lines
        self.last_inner = 0
        self.callers: list = []  # the user's frames that called the backward engine
        self.stepped_at: Place | None = None  # the line that last called an optimizer
        self.optimizing = 0
        self.unscaled = False  # whether a loss scaler took its scale out of gradients that were bad
        self.last_scalar: Event | None = None
        self.made = Calls()
        self.recent = Recent()
        self.vanished: set[int] = set()  # calls whose result holds a zero that should be a small number
        self.unread: set[int] = set()
        self.readers: dict[int, tuple[Place | None, nn.Module | None]] = {}
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Tracer:
        try:
            self._attach()
        except BaseException:
            self._detach()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._detach()

    def _attach(self) -> None:
        attach(self, self._undo)
        if not self.operations:
            return
        functions = Functions(self)
        self._undo.append(keep_on_in_backward(functions, self.callers))
        for mode in (functions, Operations(self)):
            mode.__enter__()
            self._undo.append(lambda mode=mode: mode.__exit__(None, None, None))

    def _detach(self) -> None:
        self.quiet.end()
        while self._undo:
            self._undo.pop()()
        self.stack.clear()
        self.modules.clear()
        self.optimizing = 0

    def watch_readers(self, tensors: list[Tensor]) -> None:
        """Waits for the first operation that reads each of `tensors`, which are known to be bad already."""
        self.unread.update(storage_key(t) for t in tensors)

    def note_readers(self, args: tuple) -> None:
        """Notes the line that reads a tensor waited for."""
        for t in args:
            if isinstance(t, Tensor) and (key := storage_key(t)) in self.unread and not self.optimizing:
                self.unread.discard(key)
                frame, _ = user_frame(sys._getframe(1))
                self.readers[key] = (place_of(frame), module_at(frame, self.modules))

    def external(self, t: Tensor, counts: Counts) -> Event:
        """The event that stands for a bad tensor that no watched operation made."""
        return external(self, t, counts)

    def saw_root(self, module: nn.Module) -> None:
        """Notes a module called outside any other."""
        self.paths.saw(module)
        if not any(module is m for m in self.sources.modules):
            self.sources.modules.append(module)

    def saw_optimizer(self, optimizer: object) -> None:
        """Notes an optimizer that is about to step, so that its state can be named."""
        if not any(optimizer is o for o in self.sources.optimizers):
            self.sources.optimizers.append(optimizer)

    def saw_losses(self, losses: list[Tensor]) -> None:
        """Notes what backward is about to start from."""
        self.losses.extend(losses)
        if self.on_backward is not None:
            self.on_backward(losses)
