"""Anomaly mode under observation: what it says about a step, and how often it looks. Taught in lesson 03.

Autograd's anomaly mode keeps the stack of every forward operation and looks for nan in every gradient that a node of
the backward graph returns. Source: PyTorch documentation, torch.autograd.detect_anomaly.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class Said:
    """What anomaly mode said: the exception's text, and the line of the forward pass from the warning before it.

    Both are empty for a step in which it found nothing. The warning's own words change between versions of torch.
    """

    error: str = ""
    line: str = ""

    def __str__(self) -> str:
        return f"RuntimeError: {self.error}\nforward line: {self.line}" if self.error else "(it says nothing)"


def anomaly(step: Callable[[], object]) -> Said:
    """Run ``step()``, forward and backward, under anomaly mode, and return what it said.

    Other exceptions pass through. Side effects: those of `step`; anomaly mode is as it was afterwards. Cost: 1.1 to 5
    times the step (``benchmarks/anomaly.py``). It sees nan only, never inf, and gradients only, never values.
    """
    with warnings.catch_warnings(record=True) as heard, torch.autograd.set_detect_anomaly(True):
        warnings.simplefilter("always")
        try:
            step()
        except RuntimeError as error:
            if "returned nan values" not in str(error):
                raise
            return Said(str(error), _line("".join(str(warning.message) for warning in heard)))
    return Said()


def _line(warning: str) -> str:
    """The innermost source line in the stack that the warning quotes: stacks end with it, after its 'File' line."""
    lines = warning.splitlines()
    frames = [n for n, text in enumerate(lines[:-1]) if text.lstrip().startswith('File "')]
    return lines[frames[-1] + 1].strip() if frames else ""


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.checks = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.checks += func is torch.ops.aten.isnan.default
        return func(*args, **(kwargs or {}))


def count_checks(loss: Callable[[], Tensor]) -> int:
    """How many tensors anomaly mode looks at in the backward pass of ``loss()``. CPU only."""
    with torch.autograd.set_detect_anomaly(True):
        value = loss()
        with _Counter() as counter:
            value.backward()
    return counter.checks


def edges(loss: Tensor) -> int:
    """How many edges the backward graph of `loss` has: one for each gradient that a node passes on."""
    seen, count = set(), 0
    queue = [loss.grad_fn] if loss.grad_fn is not None else []
    while queue:
        node = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        following = [other for other, _ in node.next_functions if other is not None]
        count += len(following)
        queue += following
    return count


def _mlp() -> Callable[[], Tensor]:
    model, inputs = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1)), torch.randn(256, 10)
    return lambda: model(inputs).square().mean()


def _recurrent() -> Callable[[], Tensor]:
    cell, inputs = nn.RNNCell(8, 32), torch.randn(100, 16, 8)

    def loss() -> Tensor:
        state = torch.zeros(16, 32)
        for step in inputs:
            state = cell(step, state)
        return state.square().mean()

    return loss


def _transformer() -> Callable[[], Tensor]:
    layers = [nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True) for _ in range(4)]
    model, inputs = nn.Sequential(*layers), torch.randn(8, 64, 256)
    return lambda: model(inputs).square().mean()


GRAPHS: dict[str, Callable[[], Callable[[], Tensor]]] = {  # each makes a function that computes a loss
    "MLP 10-32-1, 256 rows": _mlp,
    "recurrent cell, 100 steps": _recurrent,
    "transformer, 4 layers of 256": _transformer,
}
