"""Turns the tracer's modes off for the length of an optimizer's step that cannot make a bad value.

Where arithmetic rules that out (see `screen.can_spoil`), watching some eight passes over all weights would only cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import _disable_current_modes, _get_current_dispatch_mode_stack

from nanlab.detect.state import screen
from nanlab.detect.state.training import parameters

PLAIN = {Tensor, nn.Parameter}


class Quiet:
    """On between `begin` and `end`. Modes of others stay on: then the tracer itself looks away (`looking_away`)."""

    def __init__(self) -> None:
        self.looking_away = False
        self._off: list = []

    def begin(self) -> None:
        """Turns off every mode of this thread, when the tracer's are the only ones."""
        self.looking_away = True
        if torch._C._len_torch_function_stack() == 1 and len(_get_current_dispatch_mode_stack()) == 1:
            for guard in (torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch()):
                guard.__enter__()
                self._off.append(guard)

    def end(self) -> None:
        """Turns everything on again; does nothing when it is."""
        self.looking_away = False
        while self._off:
            self._off.pop().__exit__(None, None, None)


@contextmanager
def aside() -> Iterator[None]:
    """Every mode off, for what the tracer itself computes between the program's operations."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


def harmless(optimizer: Optimizer, gradient_norm: float) -> bool:
    """Whether the step that `optimizer` is about to make can be left unwatched: an update rule and a gradient that
    cannot overflow together, and plain parameters of 32 bits or more."""
    params = parameters(optimizer)
    plain = all(type(p) in PLAIN for p in params)
    return plain and not screen.can_spoil(optimizer, gradient_norm) and not screen.narrow(params)
