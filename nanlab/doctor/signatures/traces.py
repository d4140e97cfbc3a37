"""Tracebacks: the operation that anomaly mode or JAX names, the user's line under it, the form that nanlab names."""

from collections.abc import Iterator

from nanlab.doctor.readers.event import Event
from nanlab.doctor.signatures.evidence import Evidence, Findings
from nanlab.doctor.vocabulary import operations, table

_LIKE = {  # operations that are not in the table, by a part of their name
    "attention": {"hardware_or_kernel_bug": 1.2, "fully_masked_attention": 1.1},
    "attn": {"hardware_or_kernel_bug": 1.2, "fully_masked_attention": 1.1},
    "lstm": {"exploding_gradients": 1.5},
    "rnnt": {"bad_data": 1.6},
    "ctc": {"bad_data": 1.6},
    "softmax": {"softmax_or_exp_overflow": 1.0, "fully_masked_attention": 0.9},
    "norm": {"log_or_div_of_zero": 0.8, "fp16_overflow_or_no_scaler": 0.5},
    "log": {"log_or_div_of_zero": 1.4},
    "div": {"log_or_div_of_zero": 1.4},
}


def operation(found: Findings) -> Iterator[Evidence]:
    """The operation whose gradient or value was NaN."""
    named = found.run.operation()
    if named is None:
        return
    name, line = named
    weights = operations().get(name) or next((w for part, w in _LIKE.items() if part in name), None)
    if weights:
        yield Evidence(f"a traceback names the operation {name}", (line,), weights)


def code(found: Findings) -> Iterator[Evidence]:
    """The user's lines in the traceback of the forward call, the deepest one first."""
    if found.onset is None:
        return
    seen: set[str] = set()
    lines = [e for e in found.run.events if e.trace == "code" and "^" not in e.text]
    for event in reversed(_forward(found, lines)[-6:]):
        for phrase in table("code"):
            if phrase.fits(event.low[:400]) and phrase.says not in seen and "backward(" not in event.low:
                seen.add(phrase.says)
                yield Evidence(phrase.says, (event.line,), phrase.weights)


def _forward(found: Findings, lines: list[Event]) -> list[Event]:
    """The lines of the forward call's traceback where there is one: the other only leads to ``backward``."""
    starts = [e.line for e in found.run.events if "traceback of forward call" in e.low]
    if not starts:
        return lines
    end = next(
        (e.line for e in found.run.events if e.line > starts[0] and "traceback (most recent call last)" in e.low),
        1 << 60,
    )
    return [e for e in lines if starts[0] < e.line < end]


def forms(found: Findings) -> Iterator[Evidence]:
    """The form in a report of nanlab itself."""
    for event in found.run.events:
        if "nonfiniteerror" in event.low or "nanlab" in event.low or "elements, first at" in event.low:
            for phrase in table("form"):
                if phrase.fits(event.low[:800]):
                    yield Evidence(phrase.says, (event.line,), phrase.weights)
                    return
