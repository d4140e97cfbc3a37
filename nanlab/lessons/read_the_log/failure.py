"""One symptom, several causes: runs of the course that print the same thing and died of something else.

The encoder of lesson 03 meets one bad batch: a row of zeros, a broken number in a file, or no row at all. The loss
reads the same in all three, digit for digit. `RUNS` sets these beside the failures of lessons 01 to 06. Taught in
lesson 11.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from nanlab.course.history import Fix, History, digits
from nanlab.course.record import descend, record
from nanlab.lessons import loss_explosion, padding_row, recurrent, small_boxes, softmax, two_markers

CAUSES = {  # what is wrong with batch 5, and the suspect that it is
    "a row of zeros": "log_or_div_of_zero",
    "a broken number": "bad_data",
    "no row at all": "empty_reduction",
}
FIRST_BAD_STEP = padding_row.PADDING_ROW[0]

FIXES = (  # each cures the cause at the same place in `CAUSES`, and no other
    Fix(
        "clamp_the_norm",
        "Never divide by less than 1e-8",
        {"eps": 1e-8},
        cures=True,
        why="0 divided by 1e-8 is 0, so the row of zeros stays one and no other row changes.",
    ),
    Fix(
        "check_the_file",
        "Leave out rows that are not finite",
        {"check": True},
        cures=True,
        why="The broken row never reaches the network.",
    ),
    Fix(
        "count_first",
        "Divide the sum by the number of rows, or by 1 if there is none",
        {"count": True},
        cures=True,
        why="A sum over nothing is 0, and 0 divided by 1 is 0: that batch teaches nothing and breaks nothing.",
    ),
)
COLUMNS = {
    "loss": "loss",
    "grad_norm": "gradient_norm",
    "max_act": "largest_activation",
    "max_weight": "largest_weight",
}


def batches(cause: str) -> list[tuple[Tensor, Tensor]]:
    """Twelve batches of inputs (8, 4) and targets (8, 1), float32; batch 5 suffers from `cause`, a key of `CAUSES`.

    Seeds torch's global generator: an encoder made right after this one is that of lesson 03. KeyError for other words.
    """
    rows, targets = padding_row.data(share=0.0)
    bad, row = padding_row.PADDING_ROW
    if CAUSES[cause] == "log_or_div_of_zero":
        rows[bad, row], targets[bad, row] = 0, 0
    elif CAUSES[cause] == "bad_data":
        rows[bad, row, 0] = torch.nan
    pairs = list(zip(rows, targets, strict=True))
    if CAUSES[cause] == "empty_reduction":
        pairs[bad] = (rows[bad, :0], targets[bad, :0])
    return pairs


def run(
    cause: str,
    eps: float = 0.0,
    check: bool = False,
    count: bool = False,
    lr: float = 0.5,
    steps: int = 8,
    stop: bool = True,
    dtype: torch.dtype = torch.float32,
) -> History:
    """Train the encoder of lesson 03 by SGD in `dtype` on `batches(cause)`; `eps`, `check` and `count` are the fixes.

    `stop` ends the run at the first step that is not finite. Seeds torch's global generator; about 0.2 ms a step.
    """
    pairs = batches(cause)
    model, history = padding_row.Encoder(eps).to(dtype), History()
    for step in range(steps):
        inputs, targets = (column.to(dtype) for column in pairs[step % len(pairs)])
        if check:
            real = inputs.isfinite().all(dim=1)
            inputs, targets = inputs[real], targets[real]
        unit = model.scale_rows(model.project(inputs))
        errors = (model.head(unit) - targets).square()
        loss = errors.sum() / max(errors.numel(), 1) if count else errors.mean()
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        finite = record(history, step, [unit], loss, gradients, model.parameters())
        if stop and not finite:
            break
        descend(model.parameters(), gradients, lr)
    return history


def bad_step(cause: str) -> Callable[[], None]:
    """Forward and backward through batch 5 at the initial weights, to be hunted; the batch is made beforehand."""
    inputs, targets = batches(cause)[FIRST_BAD_STEP]
    model = padding_row.Encoder()
    return lambda: (model(inputs) - targets).square().mean().backward()


class Dead(NamedTuple):
    """A run that died: what it is, the suspect behind it, and how to run it again."""

    title: str
    suspect: str
    run: Callable[[], History]


RUNS = (
    Dead("learning rate 0.1 on unscaled data", "lr_too_high", loss_explosion.run),
    Dead("one long sequence", "exploding_gradients", recurrent.run),
    Dead("softmax by hand", "softmax_or_exp_overflow", softmax.run),
    Dead("softmax shifted, then log", "softmax_or_exp_overflow", lambda: softmax.run(form="shifted")),
    Dead("squares in fp16", "fp16_overflow_or_no_scaler", small_boxes.run),
    Dead("5 sold, 0 visitors", "log_or_div_of_zero", lambda: two_markers.run("unrecorded")),
    Dead("a row of zeros", "log_or_div_of_zero", lambda: run("a row of zeros")),
    Dead("its nan wiped away", "hidden_gradient", lambda: padding_row.run(mend="nan_to_num")),
    Dead("a broken number", "bad_data", lambda: run("a broken number")),
    Dead("no row at all", "empty_reduction", lambda: run("no row at all")),
)


def symptoms(history: History) -> dict[str, str]:
    """What the last record of `history` shows, each ``"nan"``, ``"inf"`` or ``"finite"``."""
    last = {
        "loss": history.loss[-1],
        "gradient": history.gradient_norm[-1],
        "activation": history.largest_activation[-1],
    }
    return {name: "nan" if v != v else "inf" if v - v != 0 else "finite" for name, v in last.items()}


def suspects_with(quantity: str, word: str) -> list[str]:
    """The titles of the suspects behind those of the ten `RUNS` that end with `quantity` being `word`; about 0.2 s."""
    from nanlab.suspects import get

    return sorted({get(dead.suspect).title for dead in RUNS if symptoms(dead.run())[quantity] == word})


def reports() -> dict[str, str]:
    """What each of the three `CAUSES` prints up to its first bad step: the same."""
    return {cause: log(run(cause)) for cause in CAUSES}


def log(history: History, *columns: str, significant: int = 4) -> str:
    """`history` as a training script prints it, one step a line; `columns` are keys of `COLUMNS`, the loss alone if
    none is named."""
    fields = {name: getattr(history, COLUMNS[name]) for name in columns or ("loss",)}
    lines = [f"step {step}" for step in range(len(history.loss))]
    for name, values in fields.items():
        lines = [f"{line}  {name} {digits(v, significant)}" for line, v in zip(lines, values, strict=True)]
    return "\n".join(lines)
