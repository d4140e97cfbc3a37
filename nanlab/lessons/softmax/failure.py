"""The softmax that outgrows its format: exp overflows above 88.72 in fp32, and a probability of 0 has a log of -inf.

A classifier compares features with class vectors; its logits are cosines times a scale that grows by half at each step,
as a temperature that is lowered does. Row 0 is labelled wrongly. Written by hand, the loss is nan at step 6. Taught in
lesson 05. Sources: Blanchard, Higham and Higham, Accurately Computing the Log-Sum-Exp and Softmax Functions, 2021;
Milakov and Gimelshein, Online Normalizer Calculation for Softmax, 2018.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from nanlab.course.history import Fix, History
from nanlab.course.record import descend, record

SUSPECTS = ("softmax_or_exp_overflow",)
FIRST_BAD_STEP = 6  # at the standard knobs: the scale is 10 * 1.5**6 = 113.9 there, and 75.9 one step before
FIRST_BAD_WHERE = "activation"
FORMS = ("naive", "shifted", "shifted_eps", "fused")

FIXES = (
    Fix(
        "fused",
        "Give the raw logits to cross_entropy",
        {"form": "fused"},
        cures=True,
        why="It takes logsumexp(z) − z[target] and never forms a probability: nothing overflows, nothing underflows.",
    ),
    Fix(
        "cap_scale",
        "Keep the logit scale at 50 or less",
        {"cap": 50.0},
        cures=True,
        why="Cosines lie within ±1, so no logit passes 50, and e^50 fits in fp32. In fp16 the cap would have to be 11.",
    ),
    Fix(
        "shifted",
        "Subtract the maximum and keep log(softmax)",
        {"form": "shifted"},
        cures=False,
        why="The softmax is finite now. The wrongly labelled row has a probability of 0, and the log of 0 is -inf.",
    ),
    Fix(
        "epsilon_in_log",
        "Subtract the maximum and add 1e-12 in the log",
        {"form": "shifted_eps"},
        cures=False,
        why="Finite and wrong: no row can cost more than 27.6, and the row that is most wrong gets no gradient at all.",
    ),
    Fix(
        "lower_lr",
        "Lower the learning rate to 0.001",
        {"lr": 0.001},
        cures=False,
        why="The logits grow with the scale, whatever the weights do: the same step overflows.",
    ),
)


def data(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features (64, 8) of length 1 around four class vectors, float32, and labels (64,). Row 0 has the label of the
    class that is least like it. Seeds torch's global generator."""
    torch.manual_seed(seed)
    centres = normalize(torch.randn(4, 8), dim=1)
    labels = torch.arange(64) % 4
    features = normalize(centres[labels] + 0.2 * torch.randn(64, 8), dim=1)
    labels[0] = (features[0] @ centres.T).argmin()
    return features, labels


class Classifier(nn.Module):
    """Cosines between features (rows, 8) and four class vectors that start near the true ones: (rows, 4)."""

    def __init__(self, features: Tensor, labels: Tensor):
        super().__init__()
        means = torch.stack([features[1:][labels[1:] == k].mean(dim=0) for k in range(4)])
        self.classes = nn.Parameter(means + 0.1 * torch.randn(4, 8))

    def forward(self, features: Tensor) -> Tensor:
        return normalize(features, dim=1, eps=1e-4) @ normalize(self.classes, dim=1, eps=1e-4).T


def probabilities(logits: Tensor, form: str) -> Tensor:
    """The softmax over the last axis as `form` computes it."""
    if form == "fused":
        return logits.softmax(dim=-1)
    if form != "naive":
        logits = logits - logits.amax(dim=-1, keepdim=True)
    powers = logits.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


def loss_of(logits: Tensor, labels: Tensor, form: str) -> tuple[Tensor, Tensor]:
    """The probabilities and the mean cross-entropy, as `form` computes them (one of `FORMS`)."""
    p = probabilities(logits, form)
    if form == "fused":
        return p, cross_entropy(logits, labels)
    chosen = p.gather(-1, labels.unsqueeze(-1))
    return p, -(chosen + 1e-12 if form == "shifted_eps" else chosen).log().mean()


def run(lr: float = 0.05, scale: float = 10.0, dtype: torch.dtype = torch.float32, seed: int = 0, steps: int = 9,
        form: str = "naive", growth: float = 1.5, cap: float = math.inf) -> History:
    """Train a `Classifier` in `dtype` by SGD while the logit scale grows from `scale` by `growth` a step, up to `cap`.

    Seeds torch's global generator. The history ends at the first non-finite step. Cost: about 0.3 ms a step on a CPU.
    """
    features, labels = data(seed)
    model, features = Classifier(features, labels).to(dtype), features.to(dtype)
    history = History()
    for step in range(steps):
        logits = model(features) * min(cap, scale * growth**step)
        p, loss = loss_of(logits, labels, form)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        if not record(history, step, [logits, p], loss, gradients, model.parameters()):
            break
        descend(model.parameters(), gradients, lr)
    return history


@dataclass(frozen=True)
class Pass:
    """One logit of a softmax on its way: the largest so far (nan for the naive form, which knows none), e to the power
    that was taken, what the old sum was multiplied by, and the sum so far. Python floats."""

    logit: float
    largest: float
    power: float
    rescale: float
    total: float


def walk(logits: Tensor, form: str) -> list[Pass]:
    """The normaliser of ``softmax(logits)`` built up one logit at a time, in the dtype of `logits` (n,).

    `form` is "naive", "shifted" (the maximum is known before the walk) or "online" (it is found on the way).
    """
    top = logits.max() if form == "shifted" else logits.new_tensor(-math.inf)
    total, passes = logits.new_zeros(()), []
    for z in logits:
        rescale = logits.new_ones(())
        if form == "naive":
            power = z.exp()
        else:
            new = torch.maximum(top, z)
            rescale = (top - new).exp()  # 1 while the maximum stays, 0 for the first logit
            top, power = new, (z - new).exp()
        total = total * rescale + power
        largest = math.nan if form == "naive" else top.item()
        passes.append(Pass(z.item(), largest, power.item(), rescale.item(), total.item()))
    return passes
