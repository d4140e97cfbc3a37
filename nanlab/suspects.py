"""The table of usual suspects: what makes a run non-finite, how each cause shows, what cures it, what only hides it.

Lessons, the hunt, the doctor and the checks all point into this one table by a suspect's `name`. The rows live in
``suspects.toml`` beside this file.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files

COLUMNS = {
    "title": "Suspect",
    "cause": "Cause",
    "signature": "What it looks like",
    "fix": "Fix",
    "wrong_fix": "Tempting wrong fix",
    "hides": "What that hides",
    "lesson": "Lesson",
}


@dataclass(frozen=True)
class Suspect:
    """One row of the table. All fields are plain sentences, except `name` (the slug that reports and logs use),
    `lesson` (the topic of the lesson that teaches it, as in the notebooks' file names) and `kind`: ``"fault"``, or
    ``"harmless"`` for what looks like a fault in a log and is none."""

    name: str
    title: str
    kind: str
    cause: str
    signature: str
    fix: str
    wrong_fix: str
    hides: str
    lesson: str
    sources: tuple[str, ...]

    def __str__(self) -> str:
        return str(SuspectTable((self,)))

    def _repr_html_(self) -> str:
        return SuspectTable((self,))._repr_html_()


@dataclass(frozen=True)
class SuspectTable:
    """Some rows of the table, in order; prints itself in a terminal, in a notebook and as Markdown."""

    rows: tuple[Suspect, ...]

    def __iter__(self) -> Iterator[Suspect]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        """One block a suspect, wrapped at 96 columns: a seven-column table fits no terminal."""
        from textwrap import fill

        label = max(map(len, COLUMNS.values()))
        blocks = []
        for row in self.rows:
            lines = [f"{row.title}  [{row.name}]"]
            for field, heading in list(COLUMNS.items())[1:]:
                lead = f"  {heading:<{label}}  "
                lines.append(fill(getattr(row, field), 96, initial_indent=lead, subsequent_indent=" " * len(lead)))
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" style="text-align:left">{h}</th>' for h in COLUMNS.values())
        body = "".join(
            "<tr>"
            + f'<th scope="row" style="text-align:left">{escape(row.title)}</th>'
            + "".join(
                f'<td style="text-align:left;vertical-align:top">{escape(getattr(row, field))}</td>'
                for field in list(COLUMNS)[1:]
            )
            + "</tr>"
            for row in self.rows
        )
        caption = '<caption style="text-align:left">The usual suspects</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def markdown(self) -> str:
        """The rows as a Markdown table; a bar inside a cell is escaped."""
        lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + " --- |" * len(COLUMNS)]
        for row in self.rows:
            lines.append("| " + " | ".join(getattr(row, field).replace("|", r"\|") for field in COLUMNS) + " |")
        return "\n".join(lines)


@cache
def _load() -> dict[str, Suspect]:
    rows = tomllib.loads(files("nanlab").joinpath("suspects.toml").read_text("utf-8"))
    return {name: Suspect(name=name, **{**row, "sources": tuple(row["sources"])}) for name, row in rows.items()}


SUSPECTS: dict[str, Suspect] = _load()


def get(name: str) -> Suspect:
    """The suspect called `name`; KeyError names the closest ones when there is none."""
    from difflib import get_close_matches

    if name not in SUSPECTS:
        near = get_close_matches(name, SUSPECTS, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are: {', '.join(SUSPECTS)}"
        raise KeyError(f"no suspect is called {name!r}; {hint}")
    return SUSPECTS[name]


def table(*names: str) -> SuspectTable:
    """The rows called `names`, or all of them; in a notebook the result shows as a table."""
    return SuspectTable(tuple(get(name) for name in names) if names else tuple(SUSPECTS.values()))


def for_lesson(topic: str) -> SuspectTable:
    """The rows that the lesson on `topic` (such as ``"05_softmax"``) has earned."""
    return SuspectTable(tuple(row for row in SUSPECTS.values() if row.lesson == topic))
