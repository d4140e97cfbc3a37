"""Which process went bad first."""

from collections.abc import Iterator

from nanlab.doctor.signatures.evidence import Evidence, Findings


def one_rank(found: Findings) -> Iterator[Evidence]:
    """Some ranks bad in a step in which others are finite: the reduction spreads it one step later."""
    ranks = found.ranks
    if ranks is None:
        return
    if ranks.healthy and len(ranks.first) <= max(1, len(ranks.seen) // 2):
        named = ", ".join(map(str, ranks.first))
        if any("client" in e.low and e.line in ranks.lines for e in found.run.events):
            weights = {"bad_data": 1.2, "empty_reduction": 1.2, "distributed_one_rank": 1.5, "lr_too_high": -0.4}
            yield Evidence(f"client {named} alone is bad: its own data", ranks.lines, weights)
            return
        yield Evidence(
            f"rank {named} is bad while rank {ranks.healthy[0]} is finite in the same step",
            ranks.lines,
            {"distributed_one_rank": 6.0, "unknown": -1.0},
        )
    elif len(ranks.first) > 1:
        yield Evidence(
            "all ranks shown are bad in the same step: the log is of values after the reduction",
            ranks.lines,
            {"distributed_one_rank": 0.5, "unknown": 0.6},
        )
