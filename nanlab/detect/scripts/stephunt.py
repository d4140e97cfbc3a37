"""The tracer of a script, which is on while its steps are hunted."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import _disable_current_modes

from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.past import LayeredTags, read_by_script
from nanlab.detect.origin.report import Report
from nanlab.detect.trace.tracer import Tracer


class StepHunt:
    """Knows where in the tracer's record the current step began. Does nothing while it is off."""

    def __init__(self) -> None:
        self.tracer: Tracer | None = None
        self._began = 0  # the tracer's number of operations then
        self._past = LayeredTags()

    @property
    def on(self) -> bool:
        return self.tracer is not None

    def turn_on(self, roots: Iterable[nn.Module], optimizers: Iterable[Optimizer]) -> None:
        if self.tracer is None:
            self.tracer = Tracer()
            self.tracer.tags = self._past = LayeredTags()
            for root in roots:
                self.tracer.saw_root(root)
            for one in optimizers:
                self.tracer.saw_optimizer(one)
            self.tracer.__enter__()

    def turn_off(self) -> None:
        if self.tracer is not None:
            self.tracer.__exit__(None, None, None)
            self.tracer = None

    def begins(self) -> None:
        """A step begins: here, or at its first differentiable operation where the forward pass came before
        ``zero_grad``."""
        if self.tracer is not None:
            first = self.tracer.program.first_differentiable
            self._past.seal(first)
            self._began = self.tracer.program.number if first is None else first
            if first is None:
                self.tracer.losses.clear()

    def ended(self) -> None:
        """A step ended; what was differentiable so far was its own."""
        if self.tracer is not None:
            self.tracer.program.first_differentiable = None

    def batch_came(self) -> None:
        """What is there now is the input of what follows."""
        if self.tracer is not None:
            self._past.seal(None)

    def explain(self, where: str, tensors: list[Tensor], step: int) -> Report:
        """Where `tensors` came from. Needs to be on."""
        assert self.tracer is not None
        with _disable_current_modes():
            return explain(self.tracer, where, tensors, step=step)

    def note_on(self, tensors: list[Tensor]) -> list[str]:
        """What there is to say of where the input came from that `tensors` were made of."""
        with _disable_current_modes():
            note = self._past.note_on(tensors) if self.tracer is not None else None
        return [note] if note else []

    def read_by_script(self, step: int, how: str | None) -> Report | None:
        """The report on a bad number that the script may have ended for; None where it read none, or when off."""
        return read_by_script(self.tracer, step, self._began, how) if self.tracer is not None else None
