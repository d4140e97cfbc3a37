"""The answer for a terminal, a notebook and plain text: facts, suspects, a fix only above the bar, questions.

What it quotes from the log is masked, shortened and free of control characters.
"""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from nanlab.doctor.answer import Answer
from nanlab.doctor.weigh import Ranked
from nanlab.suspects import get

if TYPE_CHECKING:
    from rich.console import RenderableType

HEADLINE = {"fault": "Fault", "harmless": "Harmless", "no-nan": "Nothing non-finite", "unknown": "Nothing to read"}
COLOUR = {"fault": "red", "harmless": "green", "no-nan": "green", "unknown": "yellow"}
PIECES = 3  # pieces of evidence shown for a suspect
BEST_EFFORT = "Secrets in quoted lines are masked as far as they are recognised; read before you share."


def headline(answer: Answer) -> str:
    """One sentence: what the verdict is, since when, and how far the cause is known."""
    if answer.verdict == "unknown":
        return "The log is empty: nothing can be said."
    if answer.verdict == "no-nan":
        fine = f"No value in the {answer.lines} lines is inf or NaN."
        return fine if answer.crash is None else f"{fine} But {answer.crash[0]} (line {answer.crash[1]})."
    if answer.verdict == "harmless":
        return f"No fault: {get(answer.suspects[0].name).title.lower()}."
    return f"{_when(answer)}. {_cause(answer)}"


def _when(answer: Answer) -> str:
    step = "" if answer.first_bad_step is None else f", step {answer.first_bad_step}"
    inferred = " (inferred, not printed)" if answer.step_is == "inferred" else ""
    line = "" if answer.first_bad_line is None else f" from line {answer.first_bad_line}"
    return f"{answer.first_bad_kind or 'non-finite'}{line}{step}{inferred}"


def _cause(answer: Answer) -> str:
    first = answer.suspects[0]
    if first.band == "named":
        return f"Cause: {get(first.name).title}."
    if first.band == "likely":
        return f"Likely: {get(first.name).title}."
    family, share = next(iter(answer.families.items()))
    kind = f"; most of what fits is {family}" if share >= 0.5 else ""
    return f"The log leaves several causes open{kind}."


def ranks(answer: Answer) -> str:
    """Which rank began and which followed, or ``""``."""
    if answer.ranks is None or answer.verdict in {"harmless", "no-nan"}:
        return ""
    first = ", ".join(map(str, answer.ranks.first))
    if not answer.ranks.healthy and not answer.ranks.collateral:
        return f"Ranks {first} are bad in the same step; the log does not show which was first."
    others = sorted({*answer.ranks.healthy, *answer.ranks.collateral})
    return f"Rank {first} was bad first; collateral: {', '.join(map(str, others))}."


def because(suspect: Ranked) -> list[str]:
    """What speaks for a suspect, with the lines."""
    return [f"{piece.says} ({where(piece.lines)})" for piece in suspect.because[:PIECES]]


def quoted(answer: Answer) -> list[tuple[int, str]]:
    """The lines that the facts and the first suspect's evidence name, and the first bad one."""
    wanted = {n for _, lines in answer.facts for n in lines}
    if answer.suspects:
        wanted |= {n for piece in answer.suspects[0].because[:PIECES] for n in piece.lines[:2]}
    wanted |= {answer.first_bad_line or 0, answer.crash[1] if answer.crash else 0}
    return [(line, answer.quotes[line]) for line in sorted(wanted) if line in answer.quotes][:8]


def where(lines: tuple[int, ...]) -> str:
    """Line numbers in words."""
    shown = ", ".join(map(str, lines[:4])) + (", …" if len(lines) > 4 else "")
    return f"line {shown}" if len(lines) == 1 else f"lines {shown}"


def fact_lines(answer: Answer) -> list[str]:
    """The facts, each with its lines."""
    return [f"{says} ({where(lines)})" if lines else says for says, lines in answer.facts]


def _told(answer: Answer) -> list[tuple[str, str]]:
    """(heading, text) of what to do: fix and proof above the bar, then the questions and the lesson."""
    fix = answer.fix
    told = [("Fix", fix["fix"]), ("Verify", fix["verify"]), ("Tempting wrong fix", fix["wrong_fix"])] if fix else []
    told += [("Ask", text) for text in answer.ask_for]
    return told + ([("Lesson", answer.lesson)] if answer.lesson else [])


def as_text(answer: Answer) -> str:
    """Plain text, the same on every terminal."""
    out = [f"{HEADLINE[answer.verdict]}: {headline(answer)}"]
    out += [f"  {fact}" for fact in fact_lines(answer)] + ([f"  {ranks(answer)}"] if ranks(answer) else [])
    out += [f"  {line:>6} | {text}" for line, text in quoted(answer)]
    for suspect in answer.suspects:
        out.append(f"  {suspect.band:6}  {get(suspect.name).title}  [{suspect.name}; {suspect.family}]")
        out += [f"          {text}" for text in because(suspect)]
    out += [f"{heading}: {text}" for heading, text in _told(answer)]
    return "\n".join([*out, BEST_EFFORT] if quoted(answer) else out)


def as_rich(answer: Answer) -> "RenderableType":
    """A renderable for rich: facts, lines, a table of suspects, what to do next."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = []
    parts.append(Text.assemble((HEADLINE[answer.verdict], f"bold {COLOUR[answer.verdict]}"), "  ", headline(answer)))
    parts += [Text(f"  {fact}") for fact in [*fact_lines(answer), ranks(answer)] if fact]
    parts += [Text.assemble((f"{line:>7} ", "dim"), text) for line, text in quoted(answer)]
    if answer.suspects:
        table = Table(show_edge=False, pad_edge=False, header_style="bold")
        for heading in ("band", "suspect", "because"):
            table.add_column(heading)
        for suspect in answer.suspects:
            table.add_row(suspect.band, Text(get(suspect.name).title), Text("\n".join(because(suspect))))
        parts += [Text(), table, Text()]
    parts += [Text.assemble((f"{heading}: ", "bold"), text) for heading, text in _told(answer)]
    return Group(*parts, *([Text(BEST_EFFORT, style="dim")] if quoted(answer) else []))


@cache
def _template():
    from jinja2 import Environment

    source = files("nanlab.doctor").joinpath("card.html.jinja").read_text("utf-8")
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)


def as_html(answer: Answer) -> str:
    """A card for a notebook. Everything from the log is escaped."""
    return _template().render(
        answer=answer,
        colour={"fault": "#D55E00", "unknown": "#E69F00"}.get(answer.verdict, "#009E73"),
        title=HEADLINE[answer.verdict],
        headline=headline(answer),
        facts=[*fact_lines(answer), *filter(None, [ranks(answer)])],
        rows=[(s.band, get(s.name).title, because(s)) for s in answer.suspects],
        quoted=quoted(answer),
        told=_told(answer),
        note=BEST_EFFORT,
    )
