"""Several processes in one log: which rank went bad first, and which only followed."""

from dataclasses import dataclass

from nanlab.doctor.onset import Onset, matters
from nanlab.doctor.run import Run


@dataclass(frozen=True)
class Ranks:
    """`first` are the ranks that were bad at the earliest bad step, `healthy` those finite at that same step,
    `collateral` those that turned bad later. `lines` shows it."""

    seen: tuple[int, ...]
    first: tuple[int, ...]
    healthy: tuple[int, ...]
    collateral: tuple[int, ...]
    lines: tuple[int, ...]


def compare(run: Run, onset: Onset | None) -> Ranks | None:
    """How the ranks compare, or None when the log shows fewer than two."""
    records = [(e.rank, e.step, _state(e), e.line) for e in run.events if e.rank is not None and _state(e)]
    seen = tuple(sorted({rank for rank, *_ in records}))
    bad = [r for r in records if r[2] == "bad"]
    if len(seen) < 2 or not bad or onset is None:
        return None
    start = min((r[1] for r in bad if r[1] is not None), default=None)
    at = [r for r in records if r[1] == start] if start is not None else records
    first = {r[0] for r in at if r[2] == "bad"}
    if start is None:  # no steps: the earliest line decides
        first = {bad[0][0]}
    healthy = {r[0] for r in at if r[2] == "good"} - first
    later = {r[0] for r in bad} - first
    lines = tuple(sorted({r[3] for r in at if r[2] == "bad"} | {r[3] for r in at if r[0] in healthy}))[:6]
    return Ranks(seen, tuple(sorted(first)), tuple(sorted(healthy)), tuple(sorted(later)), lines)


def _state(event) -> str:
    values = [v for v in event.values if v.role in {"loss", "gradient"} and not v.validation and not v.average]
    if not values:
        return ""
    return "bad" if any(not v.finite and matters(event, v) for v in values) else "good"
