"""Faults that print no NaN: a loss that is exactly 0.0, a field that is missing, a gradient norm that repeats."""

from dataclasses import dataclass

from nanlab.doctor.run import Run

ZEROS = 2  # exact zeros in a row that are no rounding of a small loss
REPEATS = 3  # equal gradient norms in a row that no training gives
SMALL = 0.02  # a loss below this may round to 0.0


@dataclass(frozen=True)
class Silent:
    line: int
    step: int | None
    says: str
    form: str  # "zero", "missing" or "repeat"


def silent_signs(run: Run) -> list[Silent]:
    """The silent forms in the log, in order of their lines."""
    return sorted([*_zero_loss(run), *_missing_loss(run), *_repeated_norm(run)], key=lambda sign: sign.line)


def _zero_loss(run: Run) -> list[Silent]:
    """The Hugging Face Trainer writes 0.0 for a loss that is NaN or inf (`logging_nan_inf_filter`)."""
    streak, last = [], None
    for event in run.events:
        for value in event.values:
            if value.name != "loss" or value.validation or not _is_trainer(event):
                continue
            if value.number == 0.0 and (last is None or last > SMALL) and not _learns(event):
                streak.append(event)
                if len(streak) == ZEROS:
                    return [
                        Silent(streak[0].line, streak[0].step, "the loss is exactly 0.0, as it prints for NaN", "zero")
                    ]
            elif value.number != 0.0:
                streak, last = [], value.number
    return []


def _learns(event) -> bool:
    """A policy's loss starts at exactly 0 and its gradient does not; a reward says that it is one."""
    norms = [v.number for v in event.values if v.role == "gradient"]
    return any(0 < norm < float("inf") for norm in norms) or (
        "reward" in event.low and all(norm == norm for norm in norms)
    )


def _is_trainer(event) -> bool:
    return "learning_rate" in event.low or "grad_norm" in event.low or "'epoch'" in event.low


def _missing_loss(run: Run) -> list[Silent]:
    """Megatron leaves the field `lm loss` out when the loss is not finite."""
    had = False
    for event in run.events:
        if "consumed samples" not in event.low and "elapsed time per iteration" not in event.low:
            continue
        has = any(value.role == "loss" for value in event.values)
        if had and not has:
            return [
                Silent(event.line, event.step, "the loss is missing from the line, as it is when not finite", "missing")
            ]
        had = had or has
    return []


def _repeated_norm(run: Run) -> list[Silent]:
    """DeepSpeed repeats the last gradient norm while it skips steps; only a loss at 0.0 makes that a fault."""
    norms = [p for p in run.points("gradient") if p.value.finite and len(p.value.raw) > 5]
    for first, *rest in zip(*(norms[i:] for i in range(REPEATS)), strict=False):
        if (
            all(p.value.raw == first.value.raw for p in rest)
            and _loss_on(first.event) in {0.0, None}
            and first.value.number
        ):
            return [
                Silent(
                    first.line,
                    first.event.step,
                    "the gradient norm repeats to the last digit: no step is taken",
                    "repeat",
                )
            ]
    return []


def _loss_on(event) -> float | None:
    return next(
        (v.number for v in event.values if v.role == "loss" and not v.validation), 1.0 if event.values else None
    )
