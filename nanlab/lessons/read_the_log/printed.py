"""Runs as other programs print them: harmless lines that say nan or inf, and forms of printing that hide them.

Taught in lesson 11. Sources: `transformers.TrainingArguments.logging_nan_inf_filter`; torch.amp.GradScaler.
"""

import math
from itertools import pairwise
from typing import Any

import torch

from nanlab.course.history import History, digits
from nanlab.lessons import small_boxes, two_markers

SETTLES: dict[str, Any] = {"divide_first": True, "loss_weight": 3.0}  # two steps skipped, then the scale holds


def metric_without_samples() -> str:
    """A healthy run, one epoch a line; its validation set holds nothing of the rare class, whose accuracy is a mean
    over no sample."""
    rare = torch.tensor([]).mean().item()
    losses = enumerate(two_markers.run("none").loss)
    return "\n".join(f"epoch {i}  loss {digits(loss, 2)}  val_accuracy_rare {rare}" for i, loss in losses)


def loss_scale(settles: bool, steps: int = 6) -> str:
    """What a script with a GradScaler prints of its scale, of the gradient norm (divided by the scale, one digit: fp16
    differs beyond it between processors) and of the steps that it skips; about 1 ms a step.

    The scale settles, or it falls without end because the forward pass itself overflows.
    """
    history = small_boxes.run(scaler=True, steps=steps, **(SETTLES if settles else {}))
    lines = []
    for step, (norm, (scale, after)) in enumerate(zip(history.gradient_norm, pairwise(history.scales), strict=True)):
        skipped = "  step skipped" if after < scale else ""
        lines.append(f"step {step}  grad_norm {digits(norm / scale, 1)}  loss_scale {scale:.0f}{skipped}")
    return "\n".join(lines)


def trainer(history: History, every: int = 1) -> str:
    """`history` as the Hugging Face Trainer prints it every `every` steps.

    Its filter (on unless ``logging_nan_inf_filter=False``) adds the mean of the losses since the last record in place
    of a loss that is not finite: 0 where there is none. The gradient norm is that of the last step.
    """
    lines, total, since = [], 0.0, 0
    for step, (loss, norm) in enumerate(zip(history.loss, history.gradient_norm, strict=True), start=1):
        total += loss if math.isfinite(loss) else total / (1 + since)
        since += 1
        if since == every:
            record = {"loss": round(total / every, 4), "grad_norm": float(digits(norm, 2)), "step": step}
            lines.append(str(record))
            total, since = 0.0, 0
    return "\n".join(lines)
