"""The padding row: a row of zeros is divided by its own norm, and 0/0 is nan.

A small encoder projects rows of four features, scales each to length 1 and reads one number off it. Twelve batches of
eight rows; one row of batch 5 is padding, all zeros. The run is calm and dies at step 5. Taught in lesson 03.
"""

import torch
from torch import Tensor, nn

from nanlab.course.history import Fix, History
from nanlab.course.record import descend, record

SUSPECTS = ("log_or_div_of_zero",)
FIRST_BAD_STEP = 5  # at the standard knobs
FIRST_BAD_WHERE = "activation"
BATCHES, ROWS, FEATURES = 12, 8, 4
PADDING_ROW = (5, 2)  # batch and row of the padding row; a larger share adds more of them

FIXES = (
    Fix(
        "clamp_the_norm",
        "Keep the norm at 1e-8 or more",
        {"eps": 1e-8},
        cures=True,
        why="0 divided by 1e-8 is 0: the padding row stays a row of zeros, and no other row changes.",
    ),
    Fix(
        "leave_padding_out",
        "Take the padding rows out first",
        {"only_real_rows": True},
        cures=True,
        why="What is not in the batch is not divided. The loss is then the mean over real rows alone.",
    ),
    Fix(
        "nan_to_num",
        "Replace nan by 0 afterwards",
        {"mend": "nan_to_num"},
        cures=False,
        why="The loss is finite and its gradient is nan: backward goes through the same 0/0, and the weights are lost.",
    ),
    Fix(
        "where",
        "Put 0 in the padding rows afterwards",
        {"mend": "where"},
        cures=False,
        why="The value that was not chosen still has a gradient, 0 times infinity, which is nan.",
    ),
    Fix(
        "lower_lr",
        "Lower the learning rate to 0.001",
        {"lr": 0.001},
        cures=False,
        why="Nothing was growing. The same batch divides the same 0 by 0 at the same step.",
    ),
)


def data(share: float = 0.01, scale: float = 1.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Inputs (12, 8, 4) of standard deviation `scale` and targets (12, 8, 1), float32.

    The target is the first component of the row scaled to length 1. `share` of the 96 rows (at least one for a share
    above 0) are padding: zeros, with target 0. The first of them is `PADDING_ROW`. Seeds torch's global generator.
    """
    torch.manual_seed(seed)
    rows = torch.randn(BATCHES, ROWS, FEATURES) * scale
    targets = rows[..., :1] / rows.norm(dim=-1, keepdim=True)
    for place in _padding(share):
        rows.view(-1, FEATURES)[place] = 0
        targets.view(-1)[place] = 0
    return rows, targets


def _padding(share: float) -> list[int]:
    first = PADDING_ROW[0] * ROWS + PADDING_ROW[1]
    count = max(1, round(share * BATCHES * ROWS)) if share > 0 else 0
    others = torch.randperm(BATCHES * ROWS, generator=torch.Generator().manual_seed(0)).tolist()
    return [first, *(place for place in others if place != first)][:count]


class Encoder(nn.Module):
    """Project, scale to length 1, read off one number. (rows, 4) -> (rows, 1); initialised from torch's generator.

    `eps` keeps the divisor at `eps` or more, 0 leaves it as it is. `divide_by` is "norm" or "mean" (of magnitudes).
    `mend` is what is done to the quotient: "nothing", "nan_to_num" or "where".
    """

    def __init__(self, eps: float = 0.0, divide_by: str = "norm", mend: str = "nothing"):
        super().__init__()
        self.project = nn.Linear(FEATURES, FEATURES, bias=False)  # no bias: a row of zeros stays one
        self.head = nn.Linear(FEATURES, 1)
        self.eps, self.divide_by, self.mend = eps, divide_by, mend

    def scale_rows(self, hidden: Tensor) -> Tensor:
        """`hidden` with every row divided by its norm, or by its mean magnitude."""
        by_norm = self.divide_by == "norm"
        size = hidden.norm(dim=1, keepdim=True) if by_norm else hidden.abs().mean(dim=1, keepdim=True)
        if self.eps:
            size = size.clamp_min(self.eps)
        unit = hidden / size
        if self.mend == "nan_to_num":
            return unit.nan_to_num()
        return torch.where(size > 0, unit, 0.0) if self.mend == "where" else unit

    def forward(self, rows: Tensor) -> Tensor:
        return self.head(self.scale_rows(self.project(rows)))


def bad_step(**knobs) -> None:
    """Forward and backward through the batch with the padding row, at the initial weights; `knobs` of `Encoder`."""
    rows, targets = data()
    batch = PADDING_ROW[0]
    nn.functional.mse_loss(Encoder(**knobs)(rows[batch]), targets[batch]).backward()


def run(lr: float = 0.5, scale: float = 1.0, dtype: torch.dtype = torch.float32, seed: int = 0, steps: int = BATCHES,
        share: float = 0.01, eps: float = 0.0, divide_by: str = "norm", mend: str = "nothing",
        only_real_rows: bool = False) -> History:
    """Train an `Encoder` in `dtype` by SGD, batch after batch, up to the first non-finite step.

    After twelve steps the batches begin again. Seeds torch's global generator. Cost: about 0.2 ms a step on a CPU.
    """
    rows, targets = data(share, scale, seed)
    model = Encoder(eps, divide_by, mend).to(dtype)
    return train(model, rows.to(dtype), targets.to(dtype), lr, steps, only_real_rows)


def train(model: Encoder, rows: Tensor, targets: Tensor, lr: float, steps: int,
          only_real_rows: bool = False) -> History:
    """Train `model` in place on `rows` (batches, rows, 4); the history ends at the first non-finite step."""
    history = History()
    for step in range(steps):
        inputs, wanted = rows[step % len(rows)], targets[step % len(rows)]
        if only_real_rows:
            real = (inputs != 0).any(dim=1)
            inputs, wanted = inputs[real], wanted[real]
        unit = model.scale_rows(model.project(inputs))
        loss = nn.functional.mse_loss(model.head(unit), wanted)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        if not record(history, step, [unit], loss, gradients, model.parameters()):
            break
        descend(model.parameters(), gradients, lr)
    return history
