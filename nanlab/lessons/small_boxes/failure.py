"""Half precision: an fp16 forward pass that overflows, and fp16 gradients that round to zero.

A 8-16-1 network with squared hidden units learns an energy, a sum of squares, from readings of standard deviation 300.
Under autocast the squares pass 65,504. The same network with a small weight on its loss has gradients below what fp16
holds. Taught in lesson 04. Sources: Micikevicius et al., Mixed Precision Training, 2018; torch.amp.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from nanlab.course.history import Fix, History

SUSPECTS = ("fp16_overflow_or_no_scaler",)
FIRST_BAD_STEP = 0  # at the standard knobs
FIRST_BAD_WHERE = "activation"  # the square of the hidden units
UNDERFLOW: dict[str, Any] = {"divide_first": True, "loss_weight": 2.0**-21}  # leaves no gradient above 0 in fp16

FIXES = (
    Fix(
        "divide_first",
        "Divide before squaring",
        {"divide_first": True},
        cures=True,
        why="(h/300)² is the same number as h²/300², and no intermediate value is larger than about 10.",
    ),
    Fix(
        "bf16",
        "bf16 in place of fp16",
        {"dtype": torch.bfloat16},
        cures=True,
        why="bf16 has the exponent of fp32, so it ends at 3.39e+38; it pays with three bits of precision.",
    ),
    Fix(
        "fp32",
        "fp32, no autocast",
        {"dtype": torch.float32},
        cures=True,
        why="fp32 ends at 3.403e+38 and has 24 bits of precision; it takes twice the memory.",
    ),
    Fix(
        "grad_scaler",
        "A GradScaler",
        {"scaler": True},
        cures=False,
        why="It scales the loss, which comes after the overflow: every step is skipped and the scale halves for ever.",
    ),
    Fix(
        "lower_lr",
        "A learning rate of 1e-6",
        {"lr": 1e-6},
        cures=False,
        why="The first forward pass overflows, before any step is taken.",
    ),
)
UNDERFLOW_FIXES = (
    Fix(
        "grad_scaler",
        "A GradScaler",
        {"scaler": True},
        cures=True,
        why="The loss is multiplied by 65,536, so the gradients are too; the scaler divides them again in fp32.",
    ),
    Fix(
        "bf16",
        "bf16 in place of fp16",
        {"dtype": torch.bfloat16},
        cures=True,
        why="bf16 holds values down to 9e-41.",
    ),
    Fix(
        "raise_lr",
        "A learning rate 1,000 times larger",
        {"lr": 50.0},
        cures=False,
        why="A thousand times zero is zero.",
    ),
)


@dataclass
class HalfHistory(History):
    """A `History` with the loss scale at each step, whether any weight has moved, and the share of gradients that
    were exactly 0 at each step. Losses are divided by the loss weight, so that runs compare."""

    scales: list[float] = field(default_factory=list)
    zero_share: list[float] = field(default_factory=list)
    moved: bool = False

    @property
    def skipped(self) -> int:
        """How many steps the scaler skipped: the scale is lower after them."""
        return sum(later < earlier for earlier, later in pairwise(self.scales))

    def scale_steps(self, count: int) -> str:
        """The loss scale of the first `count` steps, one a line."""
        return "\n".join(f"step {step}   {scale:,.0f} times" for step, scale in enumerate(self.scales[:count]))

    def verdict(self) -> str:
        """What became of the run, in words that are the same on every processor."""
        told = [f"Every one of {len(self.loss)} steps is finite."]
        if not self.finite:
            where = "squares" if self.first_bad_where == "activation" else self.first_bad_where
            told = [f"Not finite from step {self.first_bad_step} on, first in the {where}."]
        if self.skipped:
            told.append(f"{self.skipped} steps were skipped.")
        if not self.moved or not self.finite:
            told.append("Nothing was learnt.")
        elif self.loss[-1] < 0.9 * self.loss[0]:
            told.append("The loss fell.")
        return " ".join(told)


def with_fix(name: str, **knobs) -> HalfHistory:
    """The overflowing run with the fix of ``FIXES`` called `name`; further `knobs` go to `run`."""
    return run(**next(fix.knobs for fix in FIXES if fix.name == name), **knobs)


def run(
    dtype: torch.dtype = torch.float16,
    scale: float = 300.0,
    lr: float = 0.05,
    loss_weight: float = 1.0,
    seed: int = 0,
    steps: int = 30,
    divide_first: bool = False,
    scaler: bool = False,
    stop: bool = True,
) -> HalfHistory:
    """Train with SGD under CPU autocast in `dtype` (fp32 and float64: without autocast); about 1 ms a step.

    The rate is divided by `loss_weight`, so in exact arithmetic that weight changes nothing. `stop` ends a run
    without a scaler at the first step that is not finite. Seeds torch's global generator.
    """
    inputs, targets, first, last = _setup(scale, seed, dtype)
    parameters = [*first.parameters(), *last.parameters()]
    start = [p.detach().clone() for p in parameters]
    optimizer = torch.optim.SGD(parameters, lr=lr / loss_weight)
    grad_scaler = torch.amp.GradScaler("cpu", enabled=scaler)
    history = HalfHistory()
    for step in range(steps):
        with autocast(dtype):
            squares, output = forward(inputs, first, last, scale, divide_first)
        loss = loss_weight * nn.functional.mse_loss(output.to(targets.dtype), targets)
        optimizer.zero_grad()
        grad_scaler.scale(loss).backward()
        history.scales.append(grad_scaler.get_scale())
        _record(history, step, squares, loss / loss_weight, parameters)
        if stop and not scaler and not history.finite:
            break
        grad_scaler.step(optimizer)
        grad_scaler.update()
    history.scales.append(grad_scaler.get_scale())
    history.moved = any(not torch.equal(a, b) for a, b in zip(start, parameters, strict=True))
    return history


def autocast(dtype: torch.dtype) -> torch.autocast:
    """CPU autocast to `dtype`, which does nothing for fp32 and float64."""
    half = dtype in (torch.float16, torch.bfloat16)
    return torch.autocast("cpu", dtype=dtype if half else torch.bfloat16, enabled=half)


def forward(inputs, first, last, scale: float, divide_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared hidden units (n, 16), before they are scaled unless `divide_first`, and the output (n, 1)."""
    hidden = first(inputs)
    if divide_first:
        small = hidden / scale
        squares = small * small
        return squares, last(squares)
    squares = hidden * hidden
    return squares, last(squares / scale**2)


def _setup(scale: float, seed: int, dtype: torch.dtype):
    torch.manual_seed(seed)
    inputs = torch.randn(256, 8) * scale
    targets = ((inputs / scale).square().sum(dim=1, keepdim=True) - 8) / 4
    first, last = nn.Linear(8, 16), nn.Linear(16, 1)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return inputs.to(wide), targets.to(wide), first.to(wide), last.to(wide)


def _record(history: HalfHistory, step: int, squares, loss, parameters) -> None:
    gradient = torch.cat([p.grad.flatten() for p in parameters]).double()
    values = {
        "activation": squares.detach().abs().max().item(),
        "loss": loss.item(),
        "gradient": gradient.norm().item(),
        "weight": torch.stack([p.detach().abs().max() for p in parameters]).max().item(),
    }
    history.zero_share.append((gradient == 0).double().mean().item())
    history.note(step, values)
