"""Measures the doctor on labelled logs: how often the label is first or among the first two, how well the scores are
calibrated, and which suspects are taken for which. Lesson 11 runs it on the cases that ship with nanlab."""

import json
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

from nanlab.doctor.diagnosis import Diagnosis, diagnose

VERDICTS = {"metric_only": "harmless", "amp_warmup_skip": "harmless", "not_nan": "no-nan"}
NO_CAUSE = ("unknown", "not_nan")  # labels that name no suspect


@dataclass(frozen=True)
class Case:
    """One labelled log: its text, the label, and what the doctor makes of it."""

    id: str
    framework: str
    primary: str
    first_bad_step: int | None
    first_bad_kind: str | None
    note: str
    text: str
    answer: Diagnosis

    @property
    def verdict(self) -> str:
        """The verdict that the label asks for."""
        return VERDICTS.get(self.primary, "fault")

    @property
    def names(self) -> list[str]:
        """The doctor's suspects, likeliest first."""
        return [suspect.name for suspect in self.answer.suspects]


@dataclass(frozen=True)
class Bin:
    """Named first suspects whose score lies in one range: how many, their mean score, and the share that was right."""

    low: float
    high: float
    count: int
    score: float
    right: float


def cases(folder: str | Path | None = None) -> list[Case]:
    """The labelled logs of `folder` (``labels.jsonl`` beside ``ID.log``), or those that ship with nanlab, diagnosed."""
    root = files("nanlab.doctor").joinpath("cases") if folder is None else Path(folder)
    found = []
    for line in root.joinpath("labels.jsonl").read_text("utf-8").splitlines():
        label = json.loads(line)
        text = root.joinpath(f"{label['id']}.log").read_bytes().decode("utf-8", "replace")
        fields = ("id", "framework", "primary", "first_bad_step", "first_bad_kind", "note")
        found.append(Case(**{name: label.get(name) for name in fields}, text=text, answer=diagnose(text + "\n")))
    return found


def top(found: list[Case], k: int) -> float:
    """Share of the cases with a cause in which the label is among the first `k` suspects."""
    with_cause = [case for case in found if case.primary not in NO_CAUSE]
    return sum(case.primary in case.names[:k] for case in with_cause) / max(1, len(with_cause))


def right_verdicts(found: list[Case]) -> float:
    """Share of all cases with the right verdict."""
    return sum(case.answer.verdict == case.verdict for case in found) / max(1, len(found))


def right_steps(found: list[Case]) -> float:
    """Share of the cases whose label carries a first bad step in which the doctor names that step."""
    carry = [case for case in found if case.first_bad_step is not None]
    return sum(case.answer.first_bad_step == case.first_bad_step for case in carry) / max(1, len(carry))


def calibration(found: list[Case], edges: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)) -> list[Bin]:
    """The first suspects by score: of those near 0.7, seven in ten should be right. Empty bins are left out."""
    pairs = [(c.answer.suspects[0].score, c.names[0] == c.primary) for c in found if c.answer.suspects]
    bins = []
    for low, high in pairwise(edges):
        inside = [(s, ok) for s, ok in pairs if low <= s < high or (high == edges[-1] and s == high)]
        if inside:
            n = len(inside)
            bins.append(Bin(low, high, n, sum(s for s, _ in inside) / n, sum(ok for _, ok in inside) / n))
    return bins


def confusion(found: list[Case]) -> Counter[tuple[str, str]]:
    """How often each label (first) was given each first suspect (second; the verdict where no suspect is named)."""
    return Counter((case.primary, case.names[0] if case.names else case.answer.verdict) for case in found)


def misses(found: list[Case]) -> list[Case]:
    """The cases with a cause whose label is not the first suspect, and those with a wrong verdict."""
    return [
        case
        for case in found
        if case.answer.verdict != case.verdict or (case.primary not in NO_CAUSE and case.names[:1] != [case.primary])
    ]
