"""What to paste or run next: the questions with the highest expected information, and what their answers change.

Each question of ``questions.toml`` says how likely every suspect makes each answer. Its expected information is the
mutual information of suspect and answer under the scores so far (Lindley, On a Measure of the Information Provided by
an Experiment, 1956). Taught in lesson 11.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp, log2

from nanlab.doctor.mask import mask
from nanlab.doctor.signatures.evidence import Evidence, Findings
from nanlab.doctor.weigh import Ranked
from nanlab.suspects import SUSPECTS, get

MOST = 2
IN_PLAY = 0.04  # a suspect with a lower score is not asked about
_SCRIPT = re.compile(
    r"File \"[^\"\n]{0,300}?([\w-]{1,60}\.py)\", line \d{1,7}, in <module>"
    r"|\bpython[\d.]{0,5} (?:-\S{1,20} )?\S{0,200}?([\w-]{1,60}\.py)\b"
)
_FAULTS = tuple(name for name, row in SUSPECTS.items() if row.kind == "fault")


@dataclass(frozen=True)
class Question:
    """One row of the table. `answers` maps an answer to log likelihoods by suspect."""

    key: str
    asks: str
    known: tuple[str, ...]
    when: tuple[str, ...]
    answers: Mapping[str, Mapping[str, float]]

    def means(self) -> str:
        """What each answer would speak for, or against."""
        parts = []
        for answer, weights in self.answers.items():
            name = max(weights, key=lambda n: abs(weights[n]))
            parts.append(f"{answer}: {'' if weights[name] > 0 else 'not '}{get(name).title}")
        return "; ".join(parts)


@cache
def questions() -> dict[str, Question]:
    """All questions by key."""
    table = tomllib.loads(files("nanlab.doctor").joinpath("questions.toml").read_text("utf-8"))
    return {key: _question(key, row) for key, row in table.items()}


def _question(key: str, row: dict) -> Question:
    answers = {name: value for name, value in row.items() if isinstance(value, dict)}
    return Question(key, row["asks"], tuple(row.get("known", ())), tuple(row.get("when", ())), answers)


def answered(key: str, answer: str) -> Evidence:
    """The evidence that an answer is. ValueError names what could be asked and answered."""
    if key not in questions():
        raise ValueError(f"there is no question {key!r}; there are: {', '.join(questions())}")
    known = questions()[key].answers
    if answer not in known:
        raise ValueError(f"{key} is answered by one of {', '.join(known)}, not {answer!r}")
    return Evidence(f"answered: {key} is {answer}", (), dict(known[answer]))


def information(question: Question, chance: Mapping[str, float]) -> float:
    """Expected information about the suspect, in bits."""
    total = sum(chance[name] for name in _FAULTS)
    prior = {name: chance[name] / total for name in _FAULTS}
    given = {name: _likelihood(question, name) for name in _FAULTS}
    bits = 0.0
    for answer in question.answers:
        mean = sum(prior[name] * given[name][answer] for name in _FAULTS)
        bits += sum(prior[n] * given[n][answer] * log2(given[n][answer] / mean) for n in _FAULTS if prior[n] > 0)
    return bits


def _likelihood(question: Question, name: str) -> dict[str, float]:
    parts = {answer: exp(weights.get(name, 0.0)) for answer, weights in question.answers.items()}
    return {answer: part / sum(parts.values()) for answer, part in parts.items()}


def ask_for(
    verdict: str, suspects: tuple[Ranked, ...], chance: Mapping[str, float], found: Findings, told: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """At most two questions, the most telling first, each with what its answers would mean and how to give them."""
    if verdict in {"no-nan", "harmless"}:
        return ()
    if not suspects:
        return ("Paste the log from the start of the run to the first NaN.",)
    open_ones = [q for q in questions().values() if _open(q, chance, found) and q.key not in told]
    late = not found.before and not _dead_at_once(found)  # the log starts after the fault: what came before is missing
    best = sorted(open_ones, key=lambda q: -information(q, chance) - (late and "records" in q.known))[:MOST]
    script = _script(found)
    return tuple(f"{q.asks.replace('{script}', script)} [{q.key}] {q.means()}." for q in best)


def _open(question: Question, chance: Mapping[str, float], found: Findings) -> bool:
    """Not answered by the log, and about a suspect that is still in play."""
    if found.run.signals(*question.known):
        return False
    if "records" in question.known and (len(found.before) >= 4 or found.run.operation() or _dead_at_once(found)):
        return False
    if "norms" in question.known and len(found.run.points("gradient")) >= 3:
        return False
    return not question.when or any(chance[name] >= IN_PLAY for name in question.when)


def _dead_at_once(found: Findings) -> bool:
    return found.onset is not None and found.onset.step in {0, 1}


def _script(found: Findings) -> str:
    """The script that the log names: on its command line, or at the bottom of a traceback."""
    for event in found.run.events:
        if (match := _SCRIPT.search(event.text[:2000])) and "site-packages" not in event.text:
            return mask(match[1] or match[2])
    return "train.py"
