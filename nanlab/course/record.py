"""One training step: write it into a `History`, and take it. Used by the failures of several lessons."""

from collections.abc import Iterable

import torch
from torch import Tensor

from nanlab.course.history import History


def record(history: History, step: int, activations: Iterable[Tensor], loss: Tensor, gradients: Iterable[Tensor],
           weights: Iterable[Tensor]) -> bool:
    """Note the step's largest magnitudes in `history`, in the order in which a step meets them; True while all four
    are finite.

    The gradient norm is taken in float64, so that it does not overflow by itself. Cost: one reduction a tensor.
    """
    values = {
        "weight": largest(weights),
        "activation": largest(activations),
        "loss": loss.item(),
        "gradient": torch.cat([g.double().flatten() for g in gradients]).norm().item(),
    }
    return history.note(step, values)


def descend(weights: Iterable[Tensor], gradients: Iterable[Tensor], lr: float) -> None:
    """One step of plain gradient descent, in place."""
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.sub_(lr * gradient)


def largest(tensors: Iterable[Tensor]) -> float:
    """The largest magnitude in `tensors`; nan where there is one (Python's max would drop it), 0 for no element."""
    return torch.stack([t.detach().abs().max() if t.numel() else t.new_zeros(()) for t in tensors]).max().item()
