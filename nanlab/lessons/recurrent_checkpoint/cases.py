"""Six dead runs without labels, one from each of the first six lessons: what the checkpoint after lesson 06 shows.

Each case is a variant that no lesson has printed. `log` shows what a training script would have printed; `CASES` holds
the truth.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from nanlab.course.history import History, digits
from nanlab.lessons import loss_explosion, padding_row, recurrent, small_boxes, softmax, two_markers

STEPS = 9


@dataclass(frozen=True)
class Case:
    """A run and what is known about it. `run` takes `lr_times` (a factor on the learning rate), `dtype` and `seed`."""

    run: Callable[..., History]
    lesson: str
    suspect: str
    evidence: str


def _padding(lr_times: float = 1.0, dtype: torch.dtype = torch.float32, seed: int = 0) -> History:
    return padding_row.run(lr=0.3 * lr_times, dtype=dtype, seed=seed + 4, steps=STEPS)


def _explosion(lr_times: float = 1.0, dtype: torch.dtype = torch.float32, seed: int = 0) -> History:
    return loss_explosion.run(lr=0.02 * lr_times, dtype=dtype, seed=seed + 4, steps=STEPS)


def _recurrent(lr_times: float = 1.0, dtype: torch.dtype = torch.float32, seed: int = 0) -> History:
    return recurrent.run(lr=0.0005 * lr_times, radius=1.15, length=100, dtype=dtype, seed=seed + 4, steps=STEPS)


def _half(lr_times: float = 1.0, dtype: torch.dtype = torch.float16, seed: int = 0) -> History:
    return small_boxes.run(lr=0.05 * lr_times, dtype=dtype, seed=seed + 4, steps=STEPS, **small_boxes.UNDERFLOW)


def _softmax(lr_times: float = 1.0, dtype: torch.dtype = torch.float32, seed: int = 0) -> History:
    return softmax.run(lr=0.1 * lr_times, scale=16.0, growth=1.3, dtype=dtype, seed=seed + 4, steps=STEPS)


def _markers(lr_times: float = 1.0, dtype: torch.dtype = torch.float32, seed: int = 0) -> History:
    return two_markers.run("unrecorded", lr=0.3 * lr_times, dtype=dtype, seed=seed + 4)


CASES = {
    "a": Case(_padding, "03_padding_row", "log_or_div_of_zero", "a row of zeros divided by its own norm, 0/0"),
    "b": Case(_explosion, "02_loss_explosion", "lr_too_high", "every step longer than the one before"),
    "c": Case(_softmax, "05_softmax", "softmax_or_exp_overflow", "exp of a score above 88.72, then inf/inf"),
    "d": Case(_recurrent, "06_recurrent", "exploding_gradients", "one long batch, one ruinous step"),
    "e": Case(_half, "04_small_boxes", "fp16_overflow_or_no_scaler", "gradients too small for fp16, all rounded to 0"),
    "f": Case(_markers, "01_two_markers", "log_or_div_of_zero", "a day that sold 5 and counted 0 visitors, 5/0"),
}


def log(letter: str) -> str:
    """What the run of case `letter` printed, two significant digits, one step a line."""
    history = CASES[letter].run()
    rows = zip(history.loss, history.gradient_norm, history.largest_activation, history.largest_weight, strict=True)
    lines = [f"{'step':>4} {'loss':>9} {'gradient norm':>14} {'largest activation':>19} {'largest weight':>15}"]
    for step, (loss, norm, activation, weight) in enumerate(rows):
        values = (digits(value, 2) for value in (loss, norm, activation, weight))
        lines.append("{:>4} {:>9} {:>14} {:>19} {:>15}".format(step, *values))
    return "\n".join(lines)


def outcome(history: History) -> str:
    """How a run ended, in a few words."""
    if not history.finite:
        return f"dies at step {history.first_bad_step}"
    if set(history.gradient_norm) == {0.0}:
        return "gradients all 0"
    return "learns" if history.loss[-1] < history.loss[0] else "alive"


def reveal(letter: str) -> str:
    """What was wrong in case `letter`, where, and what two experiments made of it."""
    case = CASES[letter]
    history = case.run()
    first = "nothing: every value is finite" if history.finite else f"step {history.first_bad_step}"
    return "\n".join(
        [
            f"Run {letter.upper()} is the failure of lesson {case.lesson[:2]}: {case.evidence}.",
            f"  first value that is not finite   {first}",
            f"  learning rate a hundred times lower   {outcome(case.run(lr_times=0.01))}",
            f"  float64   {outcome(case.run(dtype=torch.float64))}",
        ]
    )
