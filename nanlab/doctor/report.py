"""The answer for a terminal, a notebook and plain text. What it quotes from the log is masked and shortened."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from nanlab.doctor.answer import Answer
from nanlab.doctor.weigh import Ranked

if TYPE_CHECKING:
    from rich.console import RenderableType

HEADLINE = {
    "fault": "Fault",
    "harmless": "Harmless",
    "no-nan": "Nothing non-finite",
    "unknown": "Fault, cause not in the log",
}
COLOUR = {"fault": "red", "harmless": "green", "no-nan": "green", "unknown": "yellow"}
PIECES = 3  # pieces of evidence shown for a suspect


def headline(answer: Answer) -> str:
    """One sentence: what the verdict is, since when, and who is suspected."""
    if answer.verdict == "unknown" and answer.first_bad_line is None:
        return "The log is empty: nothing can be said."
    if answer.verdict == "no-nan":
        return f"No value in the {answer.lines} lines is inf or NaN."
    if answer.verdict == "harmless":
        return f"No fault: {_title(answer.suspects[0]).lower()}."
    when = "" if answer.first_bad_line is None else f" from line {answer.first_bad_line}"
    step = "" if answer.first_bad_step is None else f", step {answer.first_bad_step}"
    kind = answer.first_bad_kind or "non-finite"
    if answer.verdict == "unknown":
        return f"{kind}{when}{step}; the log favours no cause, and no suspect is named with confidence."
    sure = "" if answer.sure else " The log leaves several causes open."
    return f"{kind}{when}{step}.{sure}"


def ranks(answer: Answer) -> str:
    """Which rank began and which followed, or ``""``."""
    if answer.ranks is None or answer.verdict in {"harmless", "no-nan"}:
        return ""
    first = ", ".join(map(str, answer.ranks.first))
    if not answer.ranks.healthy and not answer.ranks.collateral:
        return f"Ranks {first} are bad in the same step; the log does not show which was first."
    others = sorted({*answer.ranks.healthy, *answer.ranks.collateral})
    return f"Rank {first} was bad first; collateral: {', '.join(map(str, others))}."


def advice(suspect: Ranked) -> dict[str, str | None]:
    """Fix, wrong fix and how to verify, from the table of suspects."""
    from nanlab.suspects import get

    row = get(suspect.name)
    return {
        "fix": row.fix,
        "verify": "Change this one thing, restart from a clean state, and see the symptom gone within one "
        "validation pass.",
        "wrong_fix": f"{row.wrong_fix} {row.hides}",
        "lesson": row.lesson,
    }


def _title(suspect: Ranked) -> str:
    from nanlab.suspects import get

    return get(suspect.name).title


def rows(answer: Answer) -> list[dict]:
    """What all three forms show of the suspects."""
    return [
        {
            "name": suspect.name,
            "title": _title(suspect),
            "score": suspect.score,
            "because": [(piece.says, piece.lines) for piece in suspect.because[:PIECES]],
        }
        for suspect in answer.suspects
    ]


def quoted(answer: Answer) -> list[tuple[int, str]]:
    """The lines that the first suspect's evidence names, and the first bad one."""
    wanted = (
        set() if not answer.suspects else {n for piece in answer.suspects[0].because[:PIECES] for n in piece.lines[:3]}
    )
    if answer.first_bad_line is not None:
        wanted.add(answer.first_bad_line)
    return [(line, answer.quotes[line]) for line in sorted(wanted) if line in answer.quotes][:8]


def _where(lines: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, lines[:4])) + (", …" if len(lines) > 4 else "")
    return f"line {shown}" if len(lines) == 1 else f"lines {shown}"


def as_text(answer: Answer) -> str:
    """Plain text, the same on every terminal."""
    out = [f"{HEADLINE[answer.verdict]}: {headline(answer)}"]
    if text := ranks(answer):
        out.append(text)
    for row in rows(answer):
        out.append(f"  {row['score']:4.0%}  {row['title']}  [{row['name']}]")
        out += [f"          {says} ({_where(lines)})" for says, lines in row["because"]]
    out += [f"  {line:>6} | {text}" for line, text in quoted(answer)]
    if answer.suspects and answer.verdict != "unknown":
        told = advice(answer.suspects[0])
        out += [f"Fix: {told['fix']}", f"Verify: {told['verify']}", f"Tempting wrong fix: {told['wrong_fix']}"]
    out += [f"Next: {text}" for text in answer.ask_for]
    if answer.lesson:
        out.append(f"Lesson: {answer.lesson}")
    return "\n".join(out)


def as_rich(answer: Answer):
    """A renderable for rich: a table of suspects, the lines, what to do next."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    verdict = (HEADLINE[answer.verdict], f"bold {COLOUR[answer.verdict]}")
    parts: list[RenderableType] = [Text.assemble(verdict, "  ", headline(answer))]
    if text := ranks(answer):
        parts.append(Text(text, style="bold"))
    if answer.suspects:
        table = Table(show_edge=False, pad_edge=False, header_style="bold")
        for heading, justify in (("score", "right"), ("suspect", "left"), ("because", "left")):
            table.add_column(heading, justify=justify)  # type: ignore[arg-type]  # literal words
        for row in rows(answer):
            because = "\n".join(f"{says} ({_where(lines)})" for says, lines in row["because"])
            table.add_row(f"{row['score']:.0%}", Text(row["title"]), Text(because))
        parts += [Text(), table, Text()]
    parts += [Text.assemble((f"{line:>7} ", "dim"), text) for line, text in quoted(answer)]
    if answer.suspects and answer.verdict != "unknown":
        told = advice(answer.suspects[0])
        for heading, said in (("Fix", told["fix"]), ("Verify", told["verify"]), ("Wrong fix", told["wrong_fix"])):
            parts.append(Text.assemble((f"{heading}: ", "bold"), said or ""))
    parts += [Text.assemble(("Next: ", "bold"), text) for text in answer.ask_for]
    if answer.lesson:
        parts.append(Text.assemble(("Lesson: ", "bold"), answer.lesson))
    return Group(*parts)


@cache
def _template():
    from jinja2 import Environment

    source = files("nanlab.doctor").joinpath("card.html.jinja").read_text("utf-8")
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)


def as_html(answer: Answer) -> str:
    """A card for a notebook. Everything from the log is escaped."""
    told = advice(answer.suspects[0]) if answer.suspects and answer.verdict != "unknown" else None
    return _template().render(
        answer=answer,
        title=HEADLINE[answer.verdict],
        headline=headline(answer),
        ranks=ranks(answer),
        rows=rows(answer),
        quoted=quoted(answer),
        told=told,
        where=_where,
    )
