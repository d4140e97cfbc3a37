"""The loss explosion: a learning rate that is too high for unscaled inputs and targets.

A 10-32-1 network learns the sum of its ten inputs with plain SGD. At the standard knobs the loss reads 900.1,
1.968e+05, 1.541e+17, inf. Taught in lesson 02.
"""

import torch
from torch import nn

from nanlab.course.history import Fix, History
from nanlab.course.record import descend, record

SUSPECTS = ("lr_too_high", "unscaled_inputs_or_targets")
FIRST_BAD_STEP = 3  # at the standard knobs
FIRST_BAD_WHERE = "loss"

FIXES = (
    Fix(
        "lower_lr",
        "Lower the learning rate to 0.001",
        {"lr": 0.001},
        cures=True,
        why="The step is now smaller than 2/λmax ≈ 0.0036, so each step ends nearer to the minimum than it began.",
    ),
    Fix(
        "scale_both",
        "Scale the inputs before the targets are made",
        {"scale": 1.0},
        cures=True,
        why="Inputs and targets are both of size 1, the loss is 100 times flatter, and 0.1 is a small step on it.",
    ),
    Fix(
        "scale_inputs_only",
        "Divide the inputs by 10 after the targets are made",
        {"divide_inputs_by": 10.0},
        cures=False,
        why="The targets are still of size 30: the network must grow large weights to reach them, exploding at step 6.",
    ),
)


def data(scale: float = 10.0, seed: int = 0, divide_inputs_by: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs (256, 10) of standard deviation `scale` and targets (256, 1), the row sums, both float32.

    Seeds torch's global generator with `seed`. The inputs are divided by `divide_inputs_by` after the targets are made.
    """
    torch.manual_seed(seed)
    inputs = torch.randn(256, 10) * scale
    targets = inputs.sum(dim=1, keepdim=True)
    return inputs / divide_inputs_by, targets


def model() -> nn.Sequential:
    """The 10-32-1 ReLU network, initialised from torch's global generator; call it right after `data`."""
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))


def run(
    lr: float = 0.1,
    scale: float = 10.0,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    steps: int = 8,
    divide_inputs_by: float = 1.0,
    measured: bool = False,
) -> History:
    """Train the standard network on the standard data in `dtype`; see `train`. Seeds torch's global generator.

    With `measured`, inputs and targets are each divided by their standard deviation, one number for all columns."""
    inputs, targets = data(scale, seed, divide_inputs_by)
    if measured:
        inputs, targets = inputs / inputs.std(), targets / targets.std()
    return train(model().to(dtype), inputs.to(dtype), targets.to(dtype), lr, steps)


def train(network: nn.Sequential, inputs: torch.Tensor, targets: torch.Tensor, lr: float, steps: int) -> History:
    """Train `network` in place for at most `steps` full-batch SGD steps, stopping at the first non-finite value.

    Cost: well under a millisecond a step on a CPU.
    """
    history = History()
    for step in range(steps):
        hidden = network[1](network[0](inputs))
        output = network[2](hidden)
        loss = nn.functional.mse_loss(output, targets)
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        if not record(history, step, (hidden, output), loss, gradients, network.parameters()):
            break
        descend(network.parameters(), gradients, lr)
    return history
