"""What a tracer has seen so far: the program, the bad values in it, and where each of them came from."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable

from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab.detect.state.training import Optimizers, TrainingState
from nanlab.detect.trace.labels import module_at, place_of, user_frame
from nanlab.detect.trace.program import Program
from nanlab.detect.trace.provenance import Event, Reader, Tags, storage_key
from nanlab.detect.trace.quiet import Quiet
from nanlab.detect.trace.recent import Recent

LOSSES = 4  # the latest losses are kept, no more: each holds a graph


class Trace:
    """`losses` holds what backward was last called on. Set to True, `muted` ends all recording. `on_backward` is called
    with the losses before a graph runs, `on_optimizer` with an optimizer before it steps; either may raise, and
    `on_optimizer` returns whether the step can be left unwatched."""

    def __init__(self, model: nn.Module | None, optimizer: Optimizers, batch: object) -> None:
        self.program = Program(model)
        self.sources = TrainingState(model, optimizer, batch)
        self.tags, self.recent, self.readers = Tags(), Recent(), Readers()
        self.vanished: set[int] = set()  # calls whose result holds a zero that should be a small number
        self.unscaled = False  # whether a loss scaler took its scale out of gradients that were bad
        self.last_scalar: Event | None = None  # what the program last read a bad Python number from
        self.looked: Event | None = None  # what the program last asked torch whether it is finite, and is not
        self.losses: deque[Tensor] = deque(maxlen=LOSSES)
        self.muted, self.quiet = False, Quiet()
        self.on_backward: Callable[[list[Tensor]], None] | None = None
        self.on_optimizer: Callable[[Optimizer], bool | None] | None = None

    def saw_root(self, module: nn.Module) -> None:
        """Notes a module called outside any other."""
        self.program.paths.saw(module)
        if not any(module is m for m in self.sources.modules):
            self.sources.modules.append(module)

    def saw_optimizer(self, optimizer: Optimizer) -> None:
        """Notes an optimizer that is about to step, so that its state can be named."""
        self.sources.learn(None, optimizer, None)

    def saw_losses(self, losses: list[Tensor]) -> None:
        """Notes what backward is about to start from."""
        self.losses.extend(losses)
        if self.on_backward is not None:
            self.on_backward(losses)


class Readers:
    """Waits for the line that first reads a tensor which is known to be bad already."""

    def __init__(self) -> None:
        self.waiting: set[int] = set()
        self._found: dict[int, Reader] = {}

    def wait_for(self, tensors: list[Tensor]) -> None:
        self.waiting.update(storage_key(t) for t in tensors)

    def note(self, args: tuple, program: Program) -> None:
        """Notes the line that the program stands at as the reader of those of `args` that are waited for."""
        for t in args:
            if isinstance(t, Tensor) and (key := storage_key(t)) in self.waiting and not program.optimizing:
                self.waiting.discard(key)
                frame, _ = user_frame(sys._getframe(1))
                self._found[key] = (place_of(frame), module_at(frame, program.modules))

    def of(self, t: Tensor) -> Reader | None:
        return self._found.get(storage_key(t))
