"""The answer as plain data."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nanlab.doctor.ranks import Ranks
from nanlab.doctor.signatures import Evidence
from nanlab.doctor.weigh import Ranked

SURE = 0.5  # a score from which a suspect is named without a caveat


@dataclass(frozen=True)
class Answer:
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
