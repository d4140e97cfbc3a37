"""The same run tried two ways in one log: where one way is finite and the other is not, the difference is the cause."""

import re
from collections.abc import Iterator

from nanlab.doctor.signatures.evidence import Evidence, Findings

_WAYS = {  # what differs -> (name of the way, pattern)
    "precision": (
        ("half", re.compile(r"\b(?:fp16|float16|half|amp|autocast|16-mixed)\b")),
        ("other", re.compile(r"\b(?:fp32|float32|bf16|bfloat16|full precision|fp64|float64|amp off|no amp)\b")),
    ),
    "kernel": (
        ("fused", re.compile(r"\b(?:compiled?|inductor|flash\w{0,14}|sdpa|xformers|triton|fused|cudnn)\b")),
        ("plain", re.compile(r"\b(?:eager|math|native|unfused|uncompiled|no compile|reference|manual)\b")),
    ),
    "device": (
        ("device", re.compile(r"\b(?:cuda(?::\d)?|gpu|mps|tpu|xla|npu|hpu|rocm)\b")),
        ("cpu", re.compile(r"\bcpu\b")),
    ),
    "clipping": (
        ("unclipped", re.compile(r"\b(?:no clip\w{0,4}|unclipped|without clip\w{0,4}|clip(?:ping)? off)\b")),
        ("clipped", re.compile(r"\b(?:clip(?:ped|ping)?(?: on)?)\b")),
    ),
    "scaling": (
        ("raw", re.compile(r"\b(?:raw|unscaled|unnormali[sz]ed|without normali[sz]\w{0,6})\b")),
        ("scaled", re.compile(r"\b(?:standardi[sz]ed|normali[sz]ed|scaled)\b")),
    ),
}
_CAUSE = {
    "precision": {"fp16_overflow_or_no_scaler": 3.0, "lr_too_high": -0.5},
    "kernel": {"hardware_or_kernel_bug": 3.0},
    "device": {"hardware_or_kernel_bug": 2.8},
    "clipping": {"exploding_gradients": 2.6},
    "scaling": {"unscaled_inputs_or_targets": 3.0},
    "rate": {"lr_too_high": 2.8},
}


def contrast(found: Findings) -> Iterator[Evidence]:
    """Lines of one way all finite, of the other all bad. The rate counts as a way too."""
    if found.onset is None:
        return
    records = [
        (e, not any(not v.finite for v in e.values if v.role == "loss"))
        for e in found.run.events
        if any(v.role == "loss" and not v.validation for v in e.values)
    ]
    for what, ((bad_way, bad_pattern), (good_way, good_pattern)) in _WAYS.items():
        first = [(e, good) for e, good in records if bad_pattern.search(e.low) and not good_pattern.search(e.low)]
        second = [(e, good) for e, good in records if good_pattern.search(e.low) and not bad_pattern.search(e.low)]
        if first and second and any(not good for _, good in first) and all(good for _, good in second):
            lines = (next(e.line for e, good in first if not good), second[0][0].line)
            yield Evidence(
                f"finite with {good_way}, not with {bad_way}: the {what} makes the difference", lines, _CAUSE[what]
            )
            return
    yield from _rates(records)


def _rates(records: list) -> Iterator[Evidence]:
    """Runs that differ in their rate: the high one dies, the low one lives."""
    rated = [
        (v.number, good, e.line)
        for e, good in records
        for v in e.values
        if v.role == "lr" and v.finite and not e.counted
    ]
    bad, good = [r for r in rated if not r[1]], [r for r in rated if r[1]]
    if bad and good and min(r[0] for r in bad) > max(r[0] for r in good):
        yield Evidence("finite with the lower rate, not with the higher", (bad[0][2], good[0][2]), _CAUSE["rate"])
