"""Where the explosion's edge lies: what becomes of a run, and the curvature that the theory of one step needs."""

import math
from functools import cache

import torch
from torch import nn

from nanlab.course.history import History
from nanlab.course.lab.map import Kind
from nanlab.lessons.loss_explosion import failure

KINDS = (
    Kind("learns: the loss falls below a half", "good"),
    Kind("hardly moves", "slow"),
    Kind("the loss climbs, still finite", "rises", "↑"),
    Kind("climbs and dies, at step 4 or later", "bad", "5"),
    Kind("dies by step 3", "worst", "3"),
)
LEARNS, SLOW, CLIMBS, DIES, DIES_AT_ONCE = range(5)


def fate(history: History) -> tuple[int, str]:
    """Which of ``KINDS`` a run is, and what its cell says."""
    step = history.first_bad_step
    if step is not None:
        return (DIES_AT_ONCE if step <= 3 else DIES), str(step)
    first, last = history.loss[0], history.loss[-1]
    if last > first:
        return CLIMBS, "↑"
    return (LEARNS if last < first / 2 else SLOW), ""


@cache
def largest_curvature(scale: float, divide_inputs_by: float) -> float:
    """λmax, the largest eigenvalue of the loss's Hessian at the first step, by 30 power iterations. Seeds torch."""
    inputs, targets = failure.data(scale, divide_inputs_by=divide_inputs_by)
    network = failure.model()
    parameters = list(network.parameters())
    loss = nn.functional.mse_loss(network(inputs), targets)
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    vector = [torch.ones_like(p) for p in parameters]
    size = 1.0
    for _ in range(30):
        length = math.sqrt(sum(v.square().sum().item() for v in vector))
        vector = [v / length for v in vector]
        slope = torch.stack([(g * v).sum() for g, v in zip(gradients, vector, strict=True)]).sum()
        vector = [p.detach() for p in torch.autograd.grad(slope, parameters, retain_graph=True)]
        size = math.sqrt(sum(v.square().sum().item() for v in vector))
    return size
