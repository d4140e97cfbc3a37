"""nanlab's own reports, read exactly: the text that `nanlab hunt` prints and the JSON that it writes."""

import re
from dataclasses import dataclass

from nanlab.doctor.onset import Onset
from nanlab.doctor.run import Run
from nanlab.suspects import SUSPECTS

_JSON = {
    "verdict": re.compile(r'"verdict": "(non-finite|finite|not-reproduced)"'),
    "step": re.compile(r'"step": (\d{1,12}|null)'),
    "suspect": re.compile(r'"suspect": "([a-z0-9_]{1,60})"'),
    "counts": re.compile(r'"counts": "([^"]{1,80})"'),
    "where": re.compile(r'"where": "([a-z_]{1,30})"'),
}
_WHAT = re.compile(r"^  what {4,8}step (\d{1,12}|\?|unknown),? ?(.{0,200})")
_SUSPECT = re.compile(r"^  suspect {1,6}(.{1,80}?)\. ")
_LAST = re.compile(r"^nanlab: (non-finite|finite|not-reproduced), (\d{1,12}) optimizer steps?")
_TITLES = {row.title: name for name, row in SUSPECTS.items()}


@dataclass(frozen=True)
class Own:
    """What a report of nanlab says: `verdict` as the hunt gives it, the step, the suspect's name, and the line."""

    verdict: str
    step: int | None
    kind: str
    suspect: str | None
    line: int

    @property
    def onset(self) -> Onset | None:
        return None if self.verdict == "finite" else Onset(self.line, self.step, self.kind, "report")


def own_report(run: Run) -> Own | None:
    """The first report of nanlab in the log, or None."""
    return _from_json(run) or _from_text(run)


def _from_json(run: Run) -> Own | None:
    found: dict[str, str] = {}
    line = 0
    for event in run.events:
        for key, pattern in _JSON.items():
            if key not in found and (match := pattern.search(event.text)):
                found[key] = match[1]
                line = line or event.line
    if not {"verdict", "step", "where"} <= set(found):
        return None
    step = int(found["step"]) if found["step"].isdigit() else None
    return Own(found["verdict"], step, _kind(found.get("counts", "")), _known(found.get("suspect")), line)


def _from_text(run: Run) -> Own | None:
    what = next(((e, m) for e in run.events if (m := _WHAT.match(e.text))), None)
    last = next(((e, m) for e in run.events if (m := _LAST.match(e.text))), None)
    if what is None:
        return Own("finite", None, "nan", None, last[0].line) if last and last[1][1] == "finite" else None
    named = next((m[1] for e in run.events if (m := _SUSPECT.match(e.text + " "))), "")
    step = int(what[1][1]) if what[1][1].isdigit() else None
    return Own("non-finite", step, _kind(what[1][2]), _TITLES.get(named), what[0].line)


def _kind(counts: str) -> str:
    return "inf" if re.search(r"\binf\b", counts) and not re.search(r"\bnan\b", counts) else "nan"


def _known(name: str | None) -> str | None:
    return name if name in SUSPECTS else None
