"""The fix and its verification: the suspect's row, spelt for the framework of the log, with the faulty line quoted."""

import re
import tomllib
from functools import cache
from importlib.resources import files

from nanlab.doctor.mask import mask
from nanlab.doctor.run import Run
from nanlab.doctor.weigh import Ranked
from nanlab.suspects import get

LOOKED_AT = 400  # lines in which a framework names itself
_SAFE = (  # a fragile operation on the user's line, and the same with an operand that cannot be zero
    (re.compile(r"\.sqrt\(\)"), ".clamp_min(1e-12).sqrt()"),
    (re.compile(r"\b((?:torch|np|jnp|tf|math)\.sqrt)\((.{1,80})\)"), r"\1((\2).clamp_min(1e-12))"),
    (re.compile(r"\.log\(\)"), ".clamp_min(1e-6).log()"),
    (re.compile(r"\b(torch\.log)\((.{1,80})\)"), r"\1((\2).clamp_min(1e-6))"),
    (re.compile(r"\b(torch\.acos)\((.{1,80})\)"), r"\1((\2).clamp(-1 + 1e-6, 1 - 1e-6))"),
    (re.compile(r"(?<=[\w)\]]) / ([\w.]{1,40}(?:\([^()]{0,40}\))?)"), r" / (\1).clamp_min(1e-6)"),
)
_AT_ZERO = {"log_or_div_of_zero", "hidden_gradient"}


@cache
def _table() -> dict:
    return tomllib.loads(files("nanlab.doctor").joinpath("fixes.toml").read_text("utf-8"))


def framework(run: Run) -> str | None:
    """The framework that the log shows, a key of ``fixes.toml``."""
    head = "\n".join(event.low[:300] for event in run.events[:LOOKED_AT])
    return next((name for name, row in _table()["framework"].items() if re.search(row["match"], head)), None)


def advice(run: Run, suspect: Ranked) -> dict[str, str]:
    """``fix``, ``verify`` and ``wrong_fix`` for a suspect that is named or likely."""
    row = get(suspect.name)
    name = framework(run)
    switch = _table()["framework"][name].get(suspect.name) if name else None
    parts = [row.fix, f"Here ({name}): {switch}." if switch else "", _safer(run) if suspect.name in _AT_ZERO else ""]
    told = {"fix": " ".join(filter(None, parts)), "verify": _table()["verify"][suspect.name]}
    return told | {"wrong_fix": f"{row.wrong_fix} {row.hides}"}


def _safer(run: Run) -> str:
    """The deepest line of the user's code with a fragile operation, and its safe form."""
    for event in reversed(run.events):
        if event.trace == "code" and "^" not in event.text and "backward" not in event.low:
            line = event.text.strip()[:160]
            for pattern, safe in _SAFE:
                if pattern.search(line):
                    return mask(f"Line {event.line}, `{line}`, becomes `{pattern.sub(safe, line, count=1)}`.")
    return ""
