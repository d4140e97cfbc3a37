"""What messages say for a suspect: each phrase once, and of one group of phrases the strongest for each suspect."""

from collections.abc import Iterator

from nanlab.doctor.signatures.evidence import Evidence, Findings

_TELLS = {"skip", "collapse", "dropped", "maybe", "unfit"}  # signals that count without a bad value
_SCALER = "scaler"  # `scaling` weighs these with their numbers
_HARMLESS = {"metric_only", "amp_warmup_skip"}


def messages(found: Findings) -> Iterator[Evidence]:
    """One piece of evidence for each phrase that adds something."""
    by_phrase: dict = {}
    for hit in found.run.hits:
        if hit.phrase.weights and hit.phrase.group != _SCALER:
            by_phrase.setdefault(hit.phrase.says, []).append(hit)
    best: dict[tuple[str, str], float] = {}
    for says, hits in sorted(by_phrase.items(), key=lambda item: -max(item[1][0].phrase.weights.values())):
        phrase = hits[0].phrase
        if phrase.signal == "half" and not found.half:
            continue  # bf16 stands beside it
        weights = {name: w for name, w in phrase.weights.items() if (phrase.group, name) not in best}
        best |= {(phrase.group, name): w for name, w in weights.items()}
        if found.onset is None and phrase.signal not in _TELLS:  # what fits a fault is no fault by itself
            weights = {name: w for name, w in weights.items() if name in _HARMLESS}
        yield Evidence(says, tuple(sorted({hit.line for hit in hits}))[:4], weights)
    yield from _no_precision(found)
    yield from _statistics(found)
    yield from _dropped(found)


def _no_precision(found: Findings) -> Iterator[Evidence]:
    silent = not (found.run.signals("half") or found.run.points("scale") or found.run.signals("skip"))
    if found.onset is not None and found.onset.sign in {"loss", "unnamed", "message"} and silent:
        says = "nothing in the log speaks of fp16"
        yield Evidence(says, (found.onset.line,), {"fp16_overflow_or_no_scaler": -0.5})


def _statistics(found: Findings) -> Iterator[Evidence]:
    """A statistic had nothing to average, or NumPy warned, or a scheduler did, and nothing else was bad."""
    hits = found.run.signals("metric") + found.run.signals("warned") + found.run.signals("dof")
    if hits and found.onset is None:
        says = "a statistic had nothing to average, and nothing else is bad"
        yield Evidence(says, (hits[0].line,), {"metric_only": 6.5, "not_nan": -2.0})
    first = found.run.signals("first_skip")
    if first and found.onset is None:
        yield Evidence(first[0].phrase.says, (first[0].line,), {"amp_warmup_skip": 8.0})


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
    weights = {"bad_data": 0.6, "fp16_overflow_or_no_scaler": 0.3, "empty_reduction": 0.3, "lr_too_high": -0.2}
    weights |= {"not_nan": -6.0, "metric_only": -5.0}
    yield Evidence("batches or steps are dropped because something was not finite", lines, weights)
