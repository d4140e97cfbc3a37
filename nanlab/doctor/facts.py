"""What the log shows whatever the cause: printed first, each fact with its lines."""

from collections.abc import Iterator
from statistics import median

from nanlab.doctor.own import Own
from nanlab.doctor.signatures.evidence import Findings

Fact = tuple[str, tuple[int, ...]]
CALM, CLIMB = 1.8, 8.0  # how far the last losses stand from the usual one


def facts(found: Findings, own: Own | None) -> tuple[Fact, ...]:
    """First sign, what went first, what stayed finite, the shape before, persistence, the scaler, what is left out."""
    if own is not None:
        return ((f"a report of nanlab itself: {own.verdict}", (own.line,)),)
    parts = (_parts, _shape, _after, _scaler, _left_out) if found.onset else (_scaler,)
    return tuple(fact for part in parts for fact in part(found))


def _parts(found: Findings) -> Iterator[Fact]:
    event = found.event
    if event is None:
        return
    values = [v for v in event.values if v.role in {"loss", "gradient", "scale"} and not v.validation and not v.average]
    bad = [v.name or "a column" for v in values if not v.finite]
    good = [v.name for v in values if v.finite and v.name]
    if bad and good:
        yield f"bad first: {', '.join(bad[:3])}; finite on that line: {', '.join(good[:3])}", (event.line,)


def _shape(found: Findings) -> Iterator[Fact]:
    points = found.before[-12:]
    if not points:
        yield "no finite training loss stands before it", ()
        return
    values = [abs(p.value.number) for p in points]
    usual, last = median(values), max(values[-2:])
    lines = (points[0].line, points[-1].line)
    if len(values) < 3:
        yield f"only {len(values)} finite loss{'es' if len(values) > 1 else ''} before it: too few for a shape", lines
    elif last >= CLIMB * max(usual, 1e-6):
        calm = max(values[:-2], default=last) <= CALM * usual + 0.05
        yield f"before it the loss {'leapt' if calm else 'climbed'}, {usual:.3g} to {last:.3g}", lines
    elif last <= CALM * usual + 0.05:
        yield f"before it the loss was calm, near {usual:.3g}", lines
    else:
        yield f"before it the loss rose, {usual:.3g} to {last:.3g}", lines


def _after(found: Findings) -> Iterator[Fact]:
    assert found.onset is not None
    later = [p for p in found.run.losses() if p.line > found.onset.line]
    good = [p for p in later if p.value.finite]
    if len(later) > 1 and not good:
        yield f"it stays so in all {len(later)} later records", (later[-1].line,)
    elif good:
        yield f"{len(good)} of {len(later)} later records are finite again", (good[0].line,)


def _scaler(found: Findings) -> Iterator[Fact]:
    hits = found.run.signals("skip")
    if hits:
        count = found.run.count(hits[0].phrase.says)
        yield f"the loss scaler skipped {count} step{'s' if count > 1 else ''}", tuple(h.line for h in hits[:2])


def _left_out(found: Findings) -> Iterator[Fact]:
    run = found.run
    missing = [] if run.signals("half", "bf16", "full", "not_half") else ["the precision"]
    missing += [] if run.points("gradient") else ["gradient norms"]
    missing += [] if run.points("lr") else ["the learning rate"]
    if missing:
        yield f"the log leaves out {', '.join(missing)}", ()
