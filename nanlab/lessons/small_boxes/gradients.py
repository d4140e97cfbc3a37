"""The activation gradients of a small classifier, whose histogram lesson 04 holds against fp16's range.

The idea is that of figure 3 of Micikevicius et al., Mixed Precision Training, 2018, on a network that trains in 0.1 s.
"""

from functools import cache

import torch
from torch import nn

from nanlab.course.record import descend


@cache
def activation_gradients(steps: int = 200) -> torch.Tensor:
    """The gradients in all activations of a small classifier after `steps` steps in fp32, flat, (66560,).

    A 16-64-64-4 ReLU network on four clusters of points, full-batch SGD at 0.2. Kept after the first call (about 0.1 s
    for 200 steps); torch's random state is as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        labels = torch.arange(256) % 4
        points = (torch.randn(4, 16) * 1.5)[labels] + torch.randn(256, 16)
        layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    parameters = list(layers.parameters())
    for _ in range(steps):
        gradients = torch.autograd.grad(nn.functional.cross_entropy(layers(points), labels), parameters)
        descend(parameters, gradients, 0.2)
    activations = [points]
    for layer in layers:
        activations.append(layer(activations[-1]))
    loss = nn.functional.cross_entropy(activations[-1], labels)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, activations[1:])])
