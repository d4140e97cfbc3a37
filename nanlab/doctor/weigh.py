"""Adds the evidence up: prior plus weights for each suspect, normalised; then families, bands and the verdict.

The sums are naive Bayes. Lesson 11 (researcher) takes them apart and measures how well the bands hold.
"""

from collections.abc import Mapping
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
    "hidden_gradient": -4.0,
    "cancellation": -4.5,
    "metric_only": -3.0,
    "amp_warmup_skip": -3.5,
    "not_nan": -2.0,
    "unknown": -2.2,
}
TEMPER = 0.9  # below 1: pieces of evidence overlap, so their sum says a little too much
SHOWN = 0.04  # scores below this are not listed
FAMILIES = {
    "divergence": ("lr_too_high", "unscaled_inputs_or_targets", "exploding_gradients"),
    "precision or kernel": ("fp16_overflow_or_no_scaler", "hardware_or_kernel_bug", "softmax_or_exp_overflow"),
    "zero, empty or masked": (
        "log_or_div_of_zero",
        "hidden_gradient",
        "cancellation",
        "empty_reduction",
        "fully_masked_attention",
    ),
    "data": ("bad_data",),
    "state": ("poisoned_state", "bad_init_or_uninitialised", "distributed_one_rank"),
    "harmless": ("metric_only", "amp_warmup_skip"),
}
FAMILY = {member: family for family, members in FAMILIES.items() for member in members}
# Bands, set on labelled logs that no weight was set with. A member is named only if something specific speaks for it.
NAMED, LIKELY = 0.60, 0.35
SPECIFIC = 2.4  # the weight of a piece of evidence that hardly another cause leaves behind
_FAULTS = tuple(name for name, row in SUSPECTS.items() if row.kind == "fault")
_HARMLESS = tuple(name for name, row in SUSPECTS.items() if row.kind == "harmless")


@dataclass(frozen=True)
class Ranked:
    """A suspect with its family, its band (``named``, ``likely`` or ``open``), its score (0 to 1, for ordering) and the
    evidence for it."""

    name: str
    score: float
    because: tuple[Evidence, ...]
    band: str = "open"

    @property
    def family(self) -> str:
        return FAMILY[self.name]

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


def verdict(chance: Mapping[str, float]) -> str:
    """``fault``, ``harmless`` or ``no-nan``: the group with most of the probability. Whether the cause of a fault can
    be named is a matter of bands."""
    fault = sum(chance[name] for name in _FAULTS) + chance["unknown"]
    groups = {"fault": fault, "harmless": sum(chance[n] for n in _HARMLESS), "no-nan": chance["not_nan"]}
    return max(groups, key=groups.__getitem__)


def families(chance: Mapping[str, float]) -> dict[str, float]:
    """The probability of each family of faults, likeliest first."""
    found = {f: sum(chance[n] for n in members) for f, members in FAMILIES.items() if f != "harmless"}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def ranked(evidence: list[Evidence], chance: Mapping[str, float], found: str) -> tuple[Ranked, ...]:
    """The suspects for a verdict, likeliest first; none where nothing is wrong."""
    if found == "no-nan":
        return ()
    names = _HARMLESS if found == "harmless" else _FAULTS
    order = sorted(names, key=lambda name: -chance[name])
    shown = [n for n in order[:5] if chance[n] >= SHOWN] or order[:1]
    bands = {n: "named" if found == "harmless" and n == order[0] else _band(evidence, chance, n) for n in shown}
    return tuple(Ranked(n, round(chance[n], 4), _because(evidence, n), bands[n]) for n in shown)


def _band(evidence: list[Evidence], chance: Mapping[str, float], name: str) -> str:
    specific = any(piece.weights.get(name, 0.0) >= SPECIFIC for piece in evidence)
    if chance[name] >= NAMED and specific:
        return "named"
    return "likely" if chance[name] >= LIKELY else "open"


def _because(evidence: list[Evidence], name: str) -> tuple[Evidence, ...]:
    """What speaks for a suspect, the weightiest first."""
    speaks = (e for e in evidence if e.weights.get(name, 0) > 0.15 and e.lines)
    return tuple(sorted(speaks, key=lambda e: -e.weights[name])[:6])
