"""One backward pass through a recurrent network, time step by time step: where the gradient grows and where it breaks.

Taught in lesson 06, and what its lab shows. Source: Pascanu, Mikolov and Bengio, On the Difficulty of Training
Recurrent Neural Networks, 2013, section 2.1.
"""

import math
from dataclasses import dataclass

import torch
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_, get_total_norm

from nanlab.lessons.recurrent.failure import SHORT, UNITS, Adder

SEQUENCES = 4  # in the batch


@dataclass(frozen=True)
class Trace:
    """What one pass forward and back left at each time step, as Python floats.

    `state` is the largest magnitude of the state, `gradient` the norm of the loss's derivative in the state (taken in
    float64). `norm` is what ``clip_grad_norm_`` returns for the parameters' gradient (computed in the run's dtype, so
    inf where a square overflows) and `clipped` the norm that is left after it; both are the same without clipping.
    `first_bad_where` is "state", "loss", "gradient" or "weight gradient", in the order in which a step makes them.
    """

    radius: float
    state: list[float]
    loss: float
    gradient: list[float]
    norm: float
    clipped: float
    first_bad_where: str | None
    first_bad_time: int | None

    @property
    def law(self) -> list[float]:
        """What the growth law predicts for `gradient`: the last one times ``radius`` to the number of steps back."""
        last = len(self.gradient) - 1
        return [self.gradient[-1] * _power(self.radius, last - time) for time in range(last + 1)]


def trace(
    radius: float = 1.1,
    length: int = 100,
    activation: str = "linear",
    silent: bool = False,
    clip: float | None = None,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> Trace:
    """One pass of an untrained `Adder` over four sequences; seeds torch's global generator.

    With `silent` all numbers but the last are 0, so that the state stays 0 until the end. Cost: about 10 ms for 500
    time steps on a CPU.
    """
    torch.manual_seed(seed)
    network = Adder(radius, activation, bias=True)  # the bias meets every time step, so that it shows the growth
    torch.nn.init.constant_(network.read_out, 1 / UNITS)
    network = network.to(dtype)
    numbers = (torch.rand(SEQUENCES, length) * (2 / SHORT)).to(dtype)
    if silent:
        numbers[:, :-1] = 0
    states = network.states(numbers)
    for state in states:
        state.retain_grad()
    loss = mse_loss(states[-1] @ network.read_out.T, numbers.sum(dim=1, keepdim=True))
    loss.backward()
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    whole = all(gradient.isfinite().all().item() for gradient in gradients)
    norm = get_total_norm(gradients).item()
    if clip is not None:
        clip_grad_norm_(network.parameters(), clip)
    sizes = [state.detach().abs().max().item() for state in states]
    norms = [state.grad.double().norm().item() for state in states if state.grad is not None]
    where, time = _first_bad(sizes, loss.item(), norms, whole)
    return Trace(radius, sizes, loss.item(), norms, norm, _norm(gradients), where, time)


def overflow_length(radius: float, dtype: torch.dtype = torch.float32) -> int:
    """The first number of steps T at which ``radius ** T`` no longer fits `dtype`, by the law; `radius` above 1."""
    return math.ceil(math.log(torch.finfo(dtype).max) / math.log(radius))


def _first_bad(state: list[float], loss: float, gradient: list[float], whole: bool) -> tuple[str | None, int | None]:
    for time, value in enumerate(state):
        if not math.isfinite(value):
            return "state", time
    if not math.isfinite(loss):
        return "loss", None
    for time in reversed(range(len(gradient))):  # backward meets the last time step first
        if not math.isfinite(gradient[time]):
            return "gradient", time
    return (None, None) if whole else ("weight gradient", None)


def _norm(gradients: list[torch.Tensor]) -> float:
    return torch.cat([gradient.double().flatten() for gradient in gradients]).norm().item()


def _power(base: float, exponent: int) -> float:
    """`base` to `exponent`, inf where Python's own power would raise an OverflowError."""
    return math.inf if exponent * math.log10(base) > 308 else base**exponent
