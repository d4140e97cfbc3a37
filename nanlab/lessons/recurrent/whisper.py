"""A whisper that goes round a circle: what a recurrent network does to a gradient, without the network.

Taught in the beginner's lesson 06.
"""

from collections.abc import Sequence

import torch
from torch.nn.utils import clip_grad_norm_

from nanlab.course.history import digits, first_nonfinite, plain_number


def pass_on(times: float = 1.1, people: int = 100) -> list[float]:
    """How loud the message is at each of `people`, as float32 numbers: 1 at the first, each next one `times` as loud.

    What float32 cannot hold is inf from there on.
    """
    loudness, heard = torch.tensor(1.0), []
    for _ in range(people):
        heard.append(loudness.item())
        loudness = loudness * times
    return heard


def told(heard: Sequence[float]) -> str:
    """`heard` in a sentence."""
    bad = first_nonfinite(heard)
    if bad is not None:
        return f"person {bad + 1} of {len(heard)} is the first for whom the number does not fit its box: {heard[bad]}"
    return f"person {len(heard)} hears it {_times(heard[-1])} the first"


def turn_down(numbers: Sequence[float], limit: float = 1.0) -> list[float]:
    """`numbers` after ``clip_grad_norm_``: made smaller together until their norm is at most `limit`."""
    weight = torch.nn.Parameter(torch.zeros(len(numbers)))
    weight.grad = torch.tensor(numbers)
    clip_grad_norm_([weight], limit)
    return [float(digits(value)) for value in weight.grad.tolist()]


def _times(loudness: float) -> str:
    if loudness == 1:
        return "as loud as"
    if loudness < 1:
        return f"{plain_number(1 / loudness, 2)} times quieter than"
    return f"{plain_number(loudness, 3)} times as loud as"
