"""What messages say for a suspect, each phrase once however often it came."""

from collections.abc import Iterator

from nanlab.doctor.signatures.evidence import Evidence, Findings

_TELLS = {"skip", "collapse", "dropped", "maybe"}  # signals that count without a bad value
_NAMED_AGAIN = {"the loss scaler skipped a step", "the loss scale was lowered", "the loss scale is at its floor"}


def messages(found: Findings) -> Iterator[Evidence]:
    """One piece of evidence for each phrase with a weight. The precision counts once, with its strongest phrase."""
    by_phrase: dict[str, list] = {}
    for hit in found.run.hits:
        if hit.phrase.weights and hit.phrase.says not in _NAMED_AGAIN:
            by_phrase.setdefault(hit.phrase.says, []).append(hit)
    half = [hits for hits in by_phrase.values() if hits[0].phrase.signal == "half"]
    strongest = max(half, key=lambda hits: max(hits[0].phrase.weights.values()), default=None)
    for says, hits in by_phrase.items():
        if hits[0].phrase.signal == "half" and (hits is not strongest or found.run.signals("bf16")):
            continue
        weights = hits[0].phrase.weights
        if found.onset is None and hits[0].phrase.signal not in _TELLS:  # what fits a fault is no fault by itself
            weights = {name: weight for name, weight in weights.items() if name in {"metric_only", "amp_warmup_skip"}}
        yield Evidence(says, tuple(sorted({hit.line for hit in hits}))[:4], weights)
    if found.onset is not None and found.onset.sign in {"loss", "unnamed", "message"} and not (half or _scaled(found)):
        line = (found.onset.line,)
        yield Evidence("nothing in the log speaks of fp16", line, {"fp16_overflow_or_no_scaler": -0.5})
    yield from _statistics(found)
    yield from _dropped(found)


def _scaled(found: Findings) -> bool:
    return bool(found.run.points("scale") or found.run.signals("skip"))


def _statistics(found: Findings) -> Iterator[Evidence]:
    """A statistic had nothing to average, or NumPy warned, and nothing else was bad."""
    hits = found.run.signals("metric") + found.run.signals("warned")
    if hits and found.onset is None:
        yield Evidence(
            "a statistic had nothing to average, and nothing else is bad",
            (hits[0].line,),
            {"metric_only": 6.5, "not_nan": -2.0},
        )


def _dropped(found: Findings) -> Iterator[Evidence]:
    """Steps dropped for gradients or losses that were not finite, in a run that no scaler explains."""
    hits = found.run.signals("dropped")
    if not hits:
        return
    lines = tuple(hit.line for hit in hits[:3])
    after = [p for p in found.run.losses() if p.value.finite and p.line > hits[-1].line]
    if found.onset is None and after and all("inf" in h.text and "nan" not in h.text for h in hits):
        weights = {"amp_warmup_skip": 5.5, "not_nan": -6.0, "metric_only": -2.0, "bad_data": -1.0}
        yield Evidence("steps with an overflow were skipped, and the run goes on", lines, weights)
        return
    weights = {
        "bad_data": 0.6,
        "fp16_overflow_or_no_scaler": 0.3,
        "empty_reduction": 0.3,
        "not_nan": -6.0,
        "metric_only": -5.0,
        "lr_too_high": -0.2,
    }
    yield Evidence("batches or steps are dropped because something was not finite", lines, weights)
