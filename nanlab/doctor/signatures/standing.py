"""Where the run stands: something that matters was bad, only a statistic was, a scaler did its work, or nothing was."""

from collections.abc import Iterator

from nanlab.doctor.onset import before_the_first_update
from nanlab.doctor.signatures.evidence import Evidence, Findings

STRONG = 6.0  # decides unless something as strong stands against it


def standing(found: Findings) -> Iterator[Evidence]:
    """Fault, harmless or nothing: the evidence that the verdict rests on."""
    run, onset = found.run, found.onset
    if onset is not None:
        yield Evidence(
            f"the first sign of the fault ({onset.sign})",
            (onset.line,),
            {"metric_only": -STRONG, "amp_warmup_skip": -STRONG, "not_nan": -STRONG},
        )
        return
    metrics = [
        p.line
        for validation in (False, True)
        for average in (False, True)
        for p in run.points("metric", "other", "unnamed", "state", validation=validation, average=average)
        if not p.value.finite and not (p.event.trace or (p.value.prose and p.value.role == "other"))
    ]
    metrics += sorted(before_the_first_update(run))
    losses = run.points("loss") or run.points("loss", average=True)
    validation = [
        p for a in (False, True) for p in run.points("loss", validation=True, average=a) if not p.value.finite
    ]
    if metrics and not any(p.value.kind == "nan" for p in validation):
        yield Evidence(
            "only a statistic is not finite; the losses are",
            tuple(sorted(set(metrics))[:4]),
            {"metric_only": STRONG, "not_nan": -3.0},
        )
    averages = [p.line for role in ("loss", "gradient") for p in run.points(role, average=True) if not p.value.finite]
    if averages and not metrics:
        yield Evidence(
            "only a running mean is not finite: one value in the past spoilt it, the current ones are fine",
            tuple(averages[:4]),
            {"amp_warmup_skip": STRONG, "not_nan": -2.0, "metric_only": 3.0},
        )
    gradients = [p.line for p in run.points("gradient") if not p.value.finite]
    if gradients:
        yield Evidence(
            "gradients overflowed now and then and recovered",
            tuple(gradients[:6]),
            {"amp_warmup_skip": STRONG, "not_nan": -3.0},
        )
    if not (metrics or averages or gradients or validation):
        yield Evidence(
            "nothing that the log prints is inf or NaN",
            tuple(p.line for p in losses[:1]),
            {"not_nan": 5.0, "metric_only": -4.0},
        )
