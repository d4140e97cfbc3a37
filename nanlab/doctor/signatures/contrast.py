"""The same run tried two ways in one log: where one way is finite and the other is not, the difference is the cause."""

import re
from collections.abc import Iterator

from nanlab.doctor.readers.event import Event
from nanlab.doctor.signatures.evidence import Evidence, Findings

_WAYS = {  # what differs -> (name of the way, pattern)
    "precision": (
        ("half", re.compile(r"\b(?:fp16|float16|half|amp|autocast|16-mixed)\b")),
        ("other", re.compile(r"\b(?:fp32|float32|bf16|bfloat16|full precision|fp64|float64|amp off|no amp)\b")),
    ),
    "kernel": (
        ("fused", re.compile(r"\b(?:compiled?|inductor|flash\w{0,14}|sdpa|xformers|triton|fused|cudnn)\b")),
        ("plain", re.compile(r"(?:\b|aot_)(?:eager|math|native|unfused|uncompiled|no compile|reference|manual)\b")),
    ),
    "device": (
        ("device", re.compile(r"\b(?:cuda(?::\d)?|gpu|mps|tpu|xla|npu|hpu|rocm)\b|\bdevice[\"']?[ =:]{1,3}[\"']?\d\b")),
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
    ] or _unnamed(found)
    for what, ((bad_way, bad_pattern), (good_way, good_pattern)) in _WAYS.items():
        first, second = _split(found, records, bad_pattern, good_pattern)
        if first and second and any(not good for _, good in first) and all(good for _, good in second):
            lines = (next(e.line for e, good in first if not good), second[0][0].line)
            yield Evidence(
                f"finite with {good_way}, not with {bad_way}: the {what} makes the difference", lines, _CAUSE[what]
            )
            return
    yield from _rates(records)


def _unnamed(found: Findings) -> list[tuple[Event, bool]]:
    """In a log that calls nothing a loss: the records that hold what was bad at the onset."""
    bad = {v.name for v in found.event.values if not v.finite} if found.event else set()
    rows = [(e, [v for v in e.values if v.name in bad]) for e in found.run.events if e.counted]
    return [(e, all(v.finite for v in values)) for e, values in rows if values]


def _split(found: Findings, records: list, bad_pattern: re.Pattern, good_pattern: re.Pattern) -> tuple[list, list]:
    """The records of either way: named on the line itself, or on the last line above that names a way."""
    ways: dict[int, str] = {}
    sides: dict[str, list] = {"bad": [], "good": []}
    current = ""
    of_record = {e.line for e, _ in records}
    for event in found.run.events:
        bad, good = bad_pattern.search(event.low[:300]), good_pattern.search(event.low[:300])
        own = "good" if good else "bad" if bad else ""  # "compile, backend eager" is the plain way
        if own and event.line not in of_record and not event.trace:
            current = own
        ways[event.line] = own or current
    for event, good in records:
        sides.get(ways.get(event.line, ""), []).append((event, good))
    return sides["bad"], sides["good"]


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


_GROUPS = (  # names of which some are always finite and others not
    (
        re.compile(
            r"\b(?:rtx|gtx|tesla|quadro|titan|geforce|radeon) ?[a-z]{0,6}\d{2,4}\w{0,6}|\b(?:[avhbtp]100|a10g?"
            r"|l40s?|[vt]4|h200|k80|p40|mi\d{3}x?)\b"
        ),
        "card",
        {"hardware_or_kernel_bug": 2.8},
    ),
    (
        re.compile(
            r"\b(?:torch|pytorch|cuda|cudnn|tensorflow|jax|triton|driver|transformers|xformers"
            r"|flash-attn)[ =:]{0,2}v?\d{1,3}\.\d{1,3}"
        ),
        "version",
        {"hardware_or_kernel_bug": 2.5},
    ),
    (
        re.compile(r"\b(?:node|host)[ _-]?\d{1,4}\b"),
        "machine",
        {"hardware_or_kernel_bug": 1.8, "distributed_one_rank": 1.0},
    ),
    (
        re.compile(r"\b(?:seed|trial|run)[ =:#]{1,2}\d{1,6}\b"),
        "seed",
        {"bad_init_or_uninitialised": 1.8, "lr_too_high": 0.3},
    ),
)


def groups(found: Findings) -> Iterator[Evidence]:
    """Cards, versions, machines or seeds of which some are always finite and others not."""
    for pattern, what, weights in _GROUPS if found.onset else ():
        state = _by_name(found, pattern)
        good = [name for name, rows in state.items() if all(ok for ok, _ in rows)]
        bad = [name for name, rows in state.items() if not all(ok for ok, _ in rows)]
        if good and bad:
            lines = (next(line for ok, line in state[bad[0]] if not ok), state[good[0]][0][1])
            yield Evidence(f"finite with {good[0]}, not with {bad[0]}: the {what} makes the difference", lines, weights)
            return


def _by_name(found: Findings, pattern: re.Pattern) -> dict[str, list[tuple[bool, int]]]:
    """(finite, line) of the records under each name that the line itself or the last heading gives."""
    state: dict[str, list[tuple[bool, int]]] = {}
    current = ""
    for event in found.run.events:
        named = pattern.search(event.low[:300])
        losses = [v for v in event.values if v.role == "loss" and not v.validation]
        current = named[0] if named else current
        if losses and current:
            state.setdefault(current, []).append((all(v.finite for v in losses), event.line))
    return state
