"""A hard example, rightly labelled, and a trained program that gets it badly wrong: does the loss let it learn?

Sixty-four pictures of four kinds. The program knows the kinds; one dog looks like a wolf, and a collar alone tells. Its
score for the right kind lies 110 below the wrong one. Taught in the beginner's lesson 05.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from nanlab.lessons.softmax.failure import loss_of

KINDS = ("dog", "wolf", "cat", "fox")
SCALE, LEARNING_RATE = 100.0, 400.0  # the scores of a program that is sure of itself, and steps to match


@dataclass
class Learning:
    """The loss at each step and how many of the 64 examples are told rightly; both end where the loss is no number."""

    loss: list[float] = field(default_factory=list)
    right: list[int] = field(default_factory=list)

    def plain(self) -> str:
        """One step a line, three digits after the point."""
        rows = enumerate(zip(self.loss, self.right, strict=True))
        return "\n".join(f"step {step}   loss {loss:.3f}   right: {right} of 64" for step, (loss, right) in rows)


def data() -> tuple[Tensor, Tensor]:
    """Features (64, 5), how much each picture looks like each kind and whether there is a collar, and labels (64,)."""
    labels = torch.arange(64) % len(KINDS)
    looks = one_hot(labels, len(KINDS)) + 0.2 * torch.rand(64, len(KINDS), generator=torch.Generator().manual_seed(0))
    features = torch.cat([looks, torch.zeros(64, 1)], dim=1)
    features[0] = torch.tensor([0.0, 1.1, 0.0, 0.0, 1.0])  # a dog by its label, a wolf by its looks, with a collar
    return features, labels


def run(form: str, steps: int = 6) -> Learning:
    """Train by SGD from scores that are `SCALE` times the looks, the loss computed as `form` says (`failure.FORMS`)."""
    features, labels = data()
    weights, learning = torch.eye(len(KINDS) + 1, len(KINDS)) * SCALE, Learning()
    for _ in range(steps):
        weights.requires_grad_(True)
        scores = features @ weights
        loss = loss_of(scores, labels, form)[1]
        learning.loss.append(loss.item())
        learning.right.append(int((scores.argmax(dim=1) == labels).sum()))
        if not loss.isfinite():
            break
        (gradient,) = torch.autograd.grad(loss, weights)
        weights = (weights - LEARNING_RATE * gradient).detach()
    return learning
