"""Write one training step into a `History`, and say whether it was finite. Used by the failures of several lessons."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from nanlab.course.history import History


def record(history: History, step: int, activations: Iterable[Tensor], loss: Tensor, gradients: Iterable[Tensor],
           weights: Iterable[Tensor], order: Sequence[str] = ("weight", "activation", "loss", "gradient")) -> bool:
    """Append the step's largest magnitudes to `history`; True while all four are finite.

    `order` is the order in which a step computes them: the first that is not finite is named. The gradient norm is
    taken in float64, so that it does not overflow by itself. Cost: one reduction a tensor.
    """
    values = {
        "weight": largest(weights),
        "activation": largest(activations),
        "loss": loss.item(),
        "gradient": torch.cat([g.double().flatten() for g in gradients]).norm().item(),
    }
    history.largest_weight.append(values["weight"])
    history.largest_activation.append(values["activation"])
    history.loss.append(values["loss"])
    history.gradient_norm.append(values["gradient"])
    bad = next((where for where in order if values[where] - values[where] != 0), None)  # inf and nan alike
    if bad is not None:
        history.first_bad_step, history.first_bad_where = step, bad
    return bad is None


def largest(tensors: Iterable[Tensor]) -> float:
    """The largest magnitude in `tensors`; nan where there is one (Python's max would drop it), 0 for no element."""
    return torch.stack([t.detach().abs().max() if t.numel() else t.new_zeros(()) for t in tensors]).max().item()
