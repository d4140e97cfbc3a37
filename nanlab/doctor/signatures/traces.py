"""Tracebacks: the operation that anomaly mode or JAX names, the user's line under it, the form that nanlab names."""

from collections.abc import Iterator

from nanlab.doctor.readers.event import Event
from nanlab.doctor.signatures.evidence import Evidence, Findings
from nanlab.doctor.vocabulary import operations, table


def operation(found: Findings) -> Iterator[Evidence]:
    """The operation whose gradient or value was NaN."""
    named = found.run.operation()
    if named is None or named[0] not in operations():
        return
    name, line = named
    yield Evidence(f"a traceback names the operation {name}", (line,), operations()[name])


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
