"""The loss scale: a few skips at the start are its work, a scale at its floor is a fault."""

import re
from collections.abc import Iterator

from nanlab.doctor.run import Run
from nanlab.doctor.signatures.evidence import Evidence, Findings

FLOOR = 1.0  # a scale that began in the thousands and is here overflows for another reason
MANY = 25  # skips in a row that no search for the right scale needs: 2**16 halved 16 times is 1
_SCALE = re.compile(
    r"(?:reducing|setting|reduced|decreas\w{1,4}|lower\w{1,4}|to)(?: (?:the )?(?:loss"
    r"|grad\w{0,4}) ?scale)?(?: from \S{1,24})? ?(?:to|:)?:? {0,2}(\d{1,30}(?:\.\d{1,30})?(?:e[-+]?\d{1,4})?)"
)


def skips(found: Findings) -> Iterator[Evidence]:
    """Steps that a scaler skipped: how many, how far the scale fell, and whether losses are finite after them."""
    run = found.run
    hits = run.signals("skip")
    scales = _scales(run)
    collapsed = [line for line, value in scales if value < FLOOR] or [hit.line for hit in run.signals("collapse")]
    settled = [line for line, value in scales if value == FLOOR]
    fell = bool(scales) and scales[0][1] >= 1024 and min(v for _, v in scales) <= FLOOR
    if collapsed or (fell and settled):
        lines = tuple((collapsed or settled)[:3])
        yield Evidence(
            "the loss scale fell to its floor",
            lines,
            {
                "fp16_overflow_or_no_scaler": 2.4,
                "amp_warmup_skip": -5.0,
                "not_nan": -5.0,
                "metric_only": -4.0,
                "exploding_gradients": 0.4,
            },
        )
        return
    drops = [line for (line, value), (_, last) in zip(scales[1:], scales, strict=False) if value < last]
    skipped = [p.line for p in run.points("other", "state") if "skipped" in p.value.name and 0 < p.value.number < 1e6]
    if not (hits or drops or skipped):
        return
    lines = tuple(sorted({hit.line for hit in hits} | set(drops) | set(skipped)))[:6]
    count = max([run.count(hit.phrase.says) for hit in hits] + [len(drops), len(skipped)])
    after = [p for p in run.losses() if p.value.finite and p.line > lines[0]]
    if found.onset is None and (after or count < MANY):
        yield Evidence(
            f"the loss scaler skipped {count} steps and the run goes on",
            lines,
            {"amp_warmup_skip": STRONG, "not_nan": -4.0, "fp16_overflow_or_no_scaler": -1.0},
        )
    elif found.onset is None:
        yield Evidence(
            f"the loss scaler skipped {count} steps and no loss is shown after them",
            lines,
            {"fp16_overflow_or_no_scaler": 5.0, "not_nan": -5.0},
        )
    else:
        yield Evidence("the loss scaler skipped steps before the end", lines, {"fp16_overflow_or_no_scaler": 1.0})


STRONG = 7.0  # decides unless the run has a fault


def _scales(run: Run) -> list[tuple[int, float]]:
    """(line, scale) wherever a line prints one, in words or as a value."""
    found = [(p.line, p.value.number) for p in run.points("scale") if p.value.finite and p.value.number > 0]
    for hit in run.signals("skip"):
        match = _SCALE.search(hit.text)
        if match and float(match[1]) > 0:
            found.append((hit.line, float(match[1])))
    return sorted(found)


def zero_loss(found: Findings) -> Iterator[Evidence]:
    """A loss printed as 0.0 from the first record on: all labels masked, or a NaN that the trainer hides."""
    from nanlab.doctor.silent import silent_signs

    signs = [s for s in silent_signs(found.run) if s.form in {"zero", "repeat"}]
    if not signs:
        return
    yield Evidence(
        signs[0].says,
        (signs[0].line,),
        {
            "fp16_overflow_or_no_scaler": 0.7,
            "hardware_or_kernel_bug": 0.3,
            "unscaled_inputs_or_targets": -2.0,
            "lr_too_high": -0.2,
            "log_or_div_of_zero": -0.6,
        },
    )
    finite = [p for p in found.run.points("gradient") if p.line >= signs[0].line and p.value.finite]
    if finite and all(p.value.number == 0 for p in finite):
        yield Evidence(
            "the gradient norm is exactly 0 too: no target takes part in the loss",
            tuple(p.line for p in finite[:2]),
            {"empty_reduction": 2.2, "fp16_overflow_or_no_scaler": -0.3},
        )


def zero_gradients(found: Findings) -> Iterator[Evidence]:
    """Gradients that are exactly 0 in an fp16 run while the loss stands: they underflowed."""
    norms = [p for p in found.run.points("gradient") if p.value.finite]
    if (
        len(norms) >= 3
        and found.half
        and all(p.value.number == 0 for p in norms)
        and any(p.value.number for p in found.run.losses())
    ):
        weights = {"fp16_overflow_or_no_scaler": 5.0, "not_nan": -5.0, "unknown": -1.0}
        yield Evidence(
            "all gradients are exactly 0 in an fp16 run: they underflowed", tuple(p.line for p in norms[:3]), weights
        )
