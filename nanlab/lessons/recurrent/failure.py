"""Exploding recurrent gradients: a small recurrent network meets one long sequence.

Thirty-two units add up the numbers of a sequence, each passing on `radius` times its own value at every time step.
Most sequences have 20 numbers; every sixth batch has 120. At the standard knobs the loss falls from 0.998 to 0.186,
reads 4e9 on the long batch, and the state overflows at the next step. One backward pass alone, time step by time
step: ``through_time``. Taught in lesson 06. Source: Pascanu, Mikolov and Bengio, On the Difficulty of
Training Recurrent Neural Networks, 2013; the identity as a start: Le, Jaitly and Hinton, A Simple Way to Initialize
Recurrent Networks of Rectified Linear Units, 2015.
"""

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.parametrizations import orthogonal

from nanlab.course.history import Fix, History, plain_number
from nanlab.course.record import record

SUSPECTS = ("exploding_gradients",)
FIRST_BAD_STEP = 6  # at the standard knobs, the step after the first long batch
FIRST_BAD_WHERE = "activation"

UNITS, BATCH = 32, 64
SHORT, LONG = 20, 120  # numbers in a sequence
LONG_EVERY = 6  # batches; the first long one is step 5
ACTIVATIONS = {"linear": lambda z: z, "relu": torch.relu, "tanh": torch.tanh}

FIXES = (
    Fix(
        "clip",
        "Clip the gradient's norm at 20",
        {"clip": 20.0},
        cures=True,
        why="Healthy steps have a norm below 20 and pass unchanged; the long batch's step is cut to the same size.",
    ),
    Fix(
        "hold",
        "Hold the spectral radius at 1",
        {"hold": True},
        cures=True,
        why="An orthogonal recurrence passes a gradient back without growth, however long the sequence.",
    ),
    Fix(
        "lower_lr",
        "Lower the learning rate a hundredfold",
        {"lr": 1e-5},
        cures=False,
        why="The gradient of the long batch is tens of millions: a hundredth of the step still ruins the weights.",
    ),
    Fix(
        "start_at_one",
        "Start at a spectral radius of 1",
        {"radius": 1.0},
        cures=False,
        why="Training moves the radius above 1 within a few steps, and 120 time steps make much of a little.",
    ),
    Fix(
        "clip_after_step",
        "Clip after the optimizer's step",
        {"clip_after_step": 20.0},
        cures=False,
        why="The optimizer has used the gradient by then: what is clipped is thrown away.",
    ),
)


class Adder(nn.Module):
    """The recurrent network: ``state = activation(recurrence @ state + read_in * number)``, read out at the end.

    `read_in` draws from torch's global generator; `read_out` starts at 0, and so does the `bias` where there is one.
    With `hold` the recurrence starts as the identity and stays orthogonal whatever the optimizer does, so that
    `radius` is not used.
    """

    def __init__(self, radius: float = 1.1, activation: str = "linear", hold: bool = False, bias: bool = False):
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.recurrence = nn.Parameter(torch.eye(UNITS) * (1.0 if hold else radius))
        self.read_in = nn.Parameter(torch.rand(UNITS, 1))
        self.bias = nn.Parameter(torch.zeros(UNITS)) if bias else 0.0
        self.read_out = nn.Parameter(torch.zeros(1, UNITS))
        if hold:
            orthogonal(self, "recurrence")

    def states(self, numbers: torch.Tensor) -> list[torch.Tensor]:
        """The state (batch, units) after each of the `numbers` (batch, length)."""
        recurrence, state, states = self.recurrence, numbers.new_zeros(len(numbers), UNITS), []
        for number in numbers.split(1, dim=1):
            state = self.activation(state @ recurrence.T + number @ self.read_in.T + self.bias)
            states.append(state)
        return states

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """The network's guess (batch, 1) at the sum of each row of `numbers` (batch, length)."""
        return self.states(numbers)[-1] @ self.read_out.T

    def radius(self) -> float:
        """The spectral radius of the recurrence now, in float64; nan where an entry is not finite."""
        recurrence = self.recurrence.detach().double()
        return torch.linalg.eigvals(recurrence).abs().max().item() if recurrence.isfinite().all() else float("nan")


@dataclass
class SequenceHistory(History):
    """A `History` that also knows each batch's `length`, the spectral `radius` before each step, and the time step at
    which the first non-finite state stood (`first_bad_time`, counted from 0; None where the states are finite)."""

    length: list[int] = field(default_factory=list)
    radius: list[float] = field(default_factory=list)
    first_bad_time: int | None = None

    def plain(self, every: int = 1) -> str:
        """As in `History`, with the length of each sequence and three digits (the next differs between processors)."""
        rows = list(enumerate(zip(self.length, self.loss, strict=True)))[::every]
        lines = [f"step {step:>2}   {n:>3} numbers   loss {plain_number(loss, 3)}" for step, (n, loss) in rows]
        return "\n".join(lines)


def batch(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers (64, `length`) between 0 and 0.1 and their sums (64, 1), float32, from torch's global generator."""
    numbers = torch.rand(BATCH, length) * (2 / SHORT)
    return numbers, numbers.sum(dim=1, keepdim=True)


def length_of(step: int, long: int = LONG) -> int:
    """How long the sequences of the batch of `step` (from 0) are."""
    return long if step % LONG_EVERY == LONG_EVERY - 1 else SHORT


def run(
    lr: float = 0.001,
    radius: float = 1.1,
    length: int = LONG,
    clip: float | None = None,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    steps: int = 12,
    activation: str = "linear",
    hold: bool = False,
    clip_after_step: float | None = None,
) -> SequenceHistory:
    """Train an `Adder` with SGD, every sixth batch being `length` long, up to the first non-finite value.

    `clip` is the largest gradient norm that a step may use; `gradient_norm` records the norm before clipping. Seeds
    torch's global generator. Cost: about 2 ms a short step and 8 ms a long one on a CPU.
    """
    torch.manual_seed(seed)
    network = Adder(radius, activation, hold).to(dtype)
    optimizer = torch.optim.SGD(network.parameters(), lr=lr)
    history = SequenceHistory()
    for step in range(steps):
        numbers, total = (t.to(dtype) for t in batch(length_of(step, length)))
        states = network.states(numbers)
        loss = mse_loss(states[-1] @ network.read_out.T, total)
        optimizer.zero_grad()
        loss.backward()
        if not _record(history, network, states, loss):
            break
        if clip is not None:
            clip_grad_norm_(network.parameters(), clip)
        optimizer.step()
        if clip_after_step is not None:
            clip_grad_norm_(network.parameters(), clip_after_step)
    return history


def _record(history: SequenceHistory, network: Adder, states: list[torch.Tensor], loss: torch.Tensor) -> bool:
    history.length.append(len(states))
    history.radius.append(network.radius())
    finite = [bool(state.isfinite().all()) for state in states]
    history.first_bad_time = finite.index(False) if False in finite else None
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    return record(history, len(history.loss), states, loss, gradients, network.parameters())
