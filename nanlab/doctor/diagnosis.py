"""What the doctor answers, and the way from a log to it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nanlab.doctor.ask import ask_for
from nanlab.doctor.mask import mask
from nanlab.doctor.onset import validation_onset
from nanlab.doctor.ranks import Ranks
from nanlab.doctor.readers import Reader
from nanlab.doctor.run import Run
from nanlab.doctor.sieve import close_lines
from nanlab.doctor.signatures import Evidence, Findings, collect
from nanlab.doctor.source import chunks
from nanlab.doctor.weigh import Ranked, ranked, scores, verdict

QUOTE = 160  # characters of a line that are quoted
SURE = 0.5  # a score from which a suspect is named without a caveat


@dataclass(frozen=True)
class Diagnosis:
    """What a log shows. `verdict` is ``fault``, ``harmless``, ``no-nan`` or ``unknown`` (something was not finite, and
    the log favours no cause); `suspects` are ranked; line numbers count from 1. `quotes` holds the lines that the
    evidence names, shortened and with secrets masked."""

    verdict: str
    suspects: tuple[Ranked, ...]
    first_bad_step: int | None
    first_bad_kind: str | None
    first_bad_line: int | None
    ask_for: tuple[str, ...]
    lesson: str | None
    ranks: Ranks | None
    evidence: tuple[Evidence, ...]
    quotes: dict[int, str]
    lines: int

    def to_dict(self) -> dict[str, Any]:
        """The answer as `nanlab diagnose --json` writes it."""
        return {
            "verdict": self.verdict,
            "suspects": [{"name": s.name, "score": s.score, "evidence": list(s.lines)} for s in self.suspects],
            "first_bad_step": self.first_bad_step,
            "first_bad_kind": self.first_bad_kind,
            "ask_for": list(self.ask_for),
            "lesson": self.lesson,
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """The same as JSON text; also written to `path` if one is given."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        if path is not None:
            Path(path).write_text(text, "utf-8")
        return text

    @property
    def sure(self) -> bool:
        """Whether the first suspect stands out enough to be named without a caveat."""
        return bool(self.suspects) and self.suspects[0].score >= SURE

    def __str__(self) -> str:
        from nanlab.doctor.report import as_text

        return as_text(self)

    __repr__ = __str__

    def __rich__(self):
        from nanlab.doctor.report import as_rich

        return as_rich(self)

    def _repr_html_(self) -> str:
        from nanlab.doctor.report import as_html

        return as_html(self)


def diagnose(log: object) -> Diagnosis:
    """Reads a training log and says when it went bad, what fits, on which lines' evidence, and what to run next.

    `log` is the text itself, a path, bytes, or an open file; gzip is unpacked. Nothing leaves the machine. Memory does
    not grow with the log: of a long one the start, the end and the surroundings of telling lines are read closely.
    Raises FileNotFoundError, IsADirectoryError, PermissionError, or `NotALog` for binary content. It cannot see what
    the log does not print: two causes that leave the same lines get similar scores.
    """
    return judge(read(log))


def read(log: object) -> Run:
    """The events of a log, what `judge` answers from; takes and raises what `diagnose` does."""
    run, reader = Run(), Reader()
    for number, text in close_lines(chunks(log)):
        run.add(reader.read(number, text))
    return run


def judge(run: Run) -> Diagnosis:
    """The answer for events already read."""
    found = Findings.of(run)
    evidence = [piece for piece in collect(found) if piece.weights]
    chance = scores(evidence)
    answer = verdict(chance) if run.events else "unknown"
    suspects = ranked(evidence, chance, answer) if run.events else ()
    first = found.onset or validation_onset(run)
    bad = answer in {"fault", "unknown"} and first is not None
    return Diagnosis(
        verdict=answer,
        suspects=suspects,
        first_bad_step=first.step if bad else None,
        first_bad_kind=first.kind if bad else None,
        first_bad_line=first.line if bad else None,
        ask_for=ask_for(answer, suspects, found),
        lesson=_lesson(answer, suspects),
        ranks=found.ranks,
        evidence=tuple(evidence),
        quotes=_quotes(run, suspects),
        lines=run.lines,
    )


def _lesson(answer: str, suspects: tuple[Ranked, ...]) -> str | None:
    from nanlab.suspects import get

    if answer == "no-nan":
        return None
    if answer == "unknown" or not suspects:
        return "11_read_the_log"
    return get(suspects[0].name).lesson


def _quotes(run: Run, suspects: tuple[Ranked, ...]) -> dict[int, str]:
    wanted = {line for suspect in suspects for line in suspect.lines}
    quotes: dict[int, str] = {}
    for event in run.events:
        if event.line in wanted and event.line not in quotes:
            quotes[event.line] = _shortened(mask(event.text[: 4 * QUOTE].strip()))
    return quotes


def _shortened(text: str) -> str:
    return text if len(text) <= QUOTE else text[: QUOTE - 1] + "…"
