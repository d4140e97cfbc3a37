"""Adds the evidence up: prior plus weights for each suspect, normalised to scores that sum to one, and the verdict.

The scores are meant as probabilities; the researcher's lesson 11 measures how well that holds.
"""

from dataclasses import dataclass
from math import exp

from nanlab.doctor.signatures.evidence import Evidence
from nanlab.suspects import SUSPECTS

# How often each cause is behind a log that someone posts, as natural logs, by the author's estimate.
PRIOR = {
    "fp16_overflow_or_no_scaler": -1.7,
    "log_or_div_of_zero": -1.9,
    "lr_too_high": -1.9,
    "bad_data": -2.2,
    "exploding_gradients": -2.4,
    "unscaled_inputs_or_targets": -2.6,
    "hardware_or_kernel_bug": -2.6,
    "empty_reduction": -2.8,
    "poisoned_state": -3.1,
    "softmax_or_exp_overflow": -2.9,
    "fully_masked_attention": -3.1,
    "bad_init_or_uninitialised": -3.1,
    "distributed_one_rank": -4.5,
    "hidden_gradient": -4.5,
    "cancellation": -5.0,
    "metric_only": -3.0,
    "amp_warmup_skip": -3.5,
    "not_nan": -2.0,
    "unknown": -2.2,
}
TEMPER = 0.9  # below 1: pieces of evidence overlap, so their sum says a little too much
SHOWN = 0.04  # scores below this are not listed
_FAULTS = tuple(name for name, row in SUSPECTS.items() if row.kind == "fault")
_HARMLESS = tuple(name for name, row in SUSPECTS.items() if row.kind == "harmless")


@dataclass(frozen=True)
class Ranked:
    """A suspect with its score (0 to 1), the evidence for it, and the lines that evidence stands on."""

    name: str
    score: float
    because: tuple[Evidence, ...]

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(sorted({line for piece in self.because for line in piece.lines}))


def scores(evidence: list[Evidence]) -> dict[str, float]:
    """Probability of each cause, ``unknown`` and ``not_nan`` included."""
    total = dict(PRIOR)
    for piece in evidence:
        for name, weight in piece.weights.items():
            total[name] = total.get(name, -4.0) + weight * TEMPER
    top = max(total.values())
    parts = {name: exp(value - top) for name, value in total.items()}
    norm = sum(parts.values())
    return {name: part / norm for name, part in parts.items()}


def verdict(chance: dict[str, float]) -> str:
    """``fault``, ``harmless``, ``no-nan`` or ``unknown``: the group with most of the probability. ``unknown`` is a run
    with a fault whose log favours no cause: there an unnamed cause is likelier than any named one."""
    fault = sum(chance[name] for name in _FAULTS)
    harmless = sum(chance[name] for name in _HARMLESS)
    groups = {"fault": fault + chance["unknown"], "harmless": harmless, "no-nan": chance["not_nan"]}
    best = max(groups, key=groups.__getitem__)
    if best == "fault" and chance["unknown"] > max(chance[name] for name in _FAULTS):
        return "unknown"
    return best


def ranked(evidence: list[Evidence], chance: dict[str, float], found: str) -> tuple[Ranked, ...]:
    """The suspects for a verdict, likeliest first; none where nothing is wrong."""
    if found == "no-nan":
        return ()
    names = _HARMLESS if found == "harmless" else _FAULTS
    order = sorted(names, key=lambda name: -chance[name])
    shown = [n for n in order[:5] if chance[n] >= SHOWN] or order[:1]
    return tuple(Ranked(n, round(chance[n], 4), _because(evidence, n)) for n in shown)


def _because(evidence: list[Evidence], name: str) -> tuple[Evidence, ...]:
    """What speaks for a suspect, the weightiest first; the first sign of the fault is always part of it."""
    speaks = sorted((e for e in evidence if e.weights.get(name, 0) > 0.15 and e.lines), key=lambda e: -e.weights[name])
    first = [e for e in evidence if e.says.startswith("the first sign") and e not in speaks]
    return (*speaks[:6], *first)
