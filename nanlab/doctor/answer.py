"""The answer as plain data."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nanlab.doctor.ranks import Ranks
from nanlab.doctor.signatures import Evidence
from nanlab.doctor.weigh import Ranked


@dataclass(frozen=True)
class Answer:
    """What a log shows. `verdict` is ``fault``, ``harmless``, ``no-nan`` or, of an empty log, ``unknown``; `suspects`
    are ranked, each in a band (``named``, ``likely``, ``open``); line numbers count from 1. `step_is` says whether
    the step was ``read`` or ``inferred``. `facts` are (sentence, lines) that hold whatever the cause. `fix` is empty
    unless the first suspect is named or likely. `quotes` holds the lines that are named, shortened and with secrets
    masked."""

    verdict: str
    suspects: tuple[Ranked, ...]
    families: dict[str, float]
    first_bad_step: int | None
    first_bad_kind: str | None
    first_bad_line: int | None
    step_is: str | None
    facts: tuple[tuple[str, tuple[int, ...]], ...]
    crash: tuple[str, int] | None
    fix: dict[str, str]
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
            "suspects": [self._suspect(s) for s in self.suspects],
            "first_bad_step": self.first_bad_step,
            "first_bad_kind": self.first_bad_kind,
            "first_bad_line": self.first_bad_line,
            "step_is": self.step_is,
            "facts": [{"says": says, "lines": list(lines)} for says, lines in self.facts],
            "crash": {"says": self.crash[0], "line": self.crash[1]} if self.crash else None,
            "ranks": asdict(self.ranks) if self.ranks else None,
            "fix": self.fix or None,
            "ask_for": list(self.ask_for),
            "lesson": self.lesson,
        }

    def _suspect(self, suspect: Ranked) -> dict[str, Any]:
        evidence = [
            {"line": line, "says": piece.says, "text": self.quotes.get(line, "")}
            for piece in suspect.because
            for line in piece.lines
        ]
        return {
            "name": suspect.name,
            "family": suspect.family,
            "band": suspect.band,
            "score": suspect.score,
            "evidence": evidence,
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """The same as JSON text; also written to `path` if one is given."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        if path is not None:
            Path(path).write_text(text, "utf-8")
        return text

    @property
    def sure(self) -> bool:
        """Whether the first suspect is named without a caveat."""
        return bool(self.suspects) and self.suspects[0].band == "named"

    @property
    def fine(self) -> bool:
        """Whether nothing is wrong that the log shows: no fault, and no death of another kind."""
        return self.verdict in {"no-nan", "harmless"} and self.crash is None
