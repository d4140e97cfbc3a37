"""The table of usual suspects: what makes a run non-finite, how each cause shows, what cures it, what only hides it.

Lessons, the hunt, the doctor and the checks all point into this one table by a suspect's `name`. The rows live in
``suspects.toml`` beside this file.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
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
PLAIN = {"plain_see": "What you see", "plain_is": "What it is", "plain_do": "What to do"}


@dataclass(frozen=True)
class Suspect:
    """One row of the table. All fields are plain sentences, except `name` (the slug that reports and logs use),
    `lesson` (the topic of the lesson that teaches it, as in the notebooks' file names; None where none
    does yet), `met` (an earlier lesson in which a beginner meets it already) and `kind`: ``"fault"``, or
    ``"harmless"`` for what looks like a fault in a log and is none. `plain_see`, `plain_is` and `plain_do` say it in
    everyday words; `first_move` is what to do first with a dead run."""

    name: str
    title: str
    kind: str
    plain_see: str
    plain_is: str
    plain_do: str
    first_move: str
    cause: str
    signature: str
    fix: str
    wrong_fix: str
    hides: str
    sources: tuple[str, ...]
    lesson: str | None = None
    met: str | None = None

    def said(self) -> dict[str, str]:
        """What the table says of it: heading -> sentence, without the title; no lesson where none teaches it yet."""
        fields = {heading: getattr(self, field) for field, heading in COLUMNS.items() if field != "title"}
        return {heading: text for heading, text in fields.items() if text}

    def __str__(self) -> str:
        return str(SuspectTable((self,)))

    def _repr_html_(self) -> str:
        return SuspectTable((self,))._repr_html_()


class _Shown:
    """Prints itself as text where there is no HTML; `template` is the Jinja template beside this file."""

    template: str

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from jinja2 import Environment

        source = files("nanlab").joinpath(self.template).read_text("utf-8")
        page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
        return page.render(shown=self, plain=PLAIN)


@dataclass(frozen=True, repr=False)
class SuspectTable(_Shown):
    """Some rows of the table, in order; prints itself in a terminal, in a notebook (a card a row) and as Markdown."""

    rows: tuple[Suspect, ...]
    template = "suspects.html.jinja"

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
            for heading, text in row.said().items():
                lead = f"  {heading:<{label}}  "
                lines.append(fill(text, 96, initial_indent=lead, subsequent_indent=" " * len(lead)))
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks)

    def markdown(self) -> str:
        """The rows as a Markdown table; a bar inside a cell is escaped."""
        lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + " --- |" * len(COLUMNS)]
        for row in self.rows:
            lines.append("| " + " | ".join((getattr(row, field) or "").replace("|", r"\|") for field in COLUMNS) + " |")
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class PlainTable(_Shown):
    """The rows of a lesson, and of those before it, in everyday words: what you see, what it is, what to do. The
    lesson's own rows come first, and are marked where others follow."""

    new: tuple[Suspect, ...]
    known: tuple[Suspect, ...]
    template = "suspects_plain.html.jinja"

    def __str__(self) -> str:
        from textwrap import fill

        blocks = []
        for row in (*self.new, *self.known):
            mark = "  (today)" if row in self.new and self.known else ""
            lines = [f"{row.title}{mark}"]
            for field, heading in PLAIN.items():
                lead = f"  {heading:<12}  "
                lines.append(fill(getattr(row, field), 96, initial_indent=lead, subsequent_indent=" " * len(lead)))
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks)


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


def in_plain_words(topic: str) -> PlainTable:
    """The rows that the lesson on `topic` teaches or lets a beginner meet, then those of the lessons before it, the
    latest first, in everyday words. A topic that has no row of its own shows the known ones."""
    new = tuple(row for row in SUSPECTS.values() if topic in (row.lesson, row.met))
    known = [(row.met or row.lesson or topic, row) for row in SUSPECTS.values() if row not in new]
    known = sorted((pair for pair in known if pair[0] < topic), key=lambda pair: pair[0], reverse=True)
    return PlainTable(new, tuple(row for _, row in known))


def for_lesson(topic: str) -> SuspectTable:
    """The rows that the lesson on `topic` (such as ``"05_softmax"``) has earned."""
    return SuspectTable(tuple(row for row in SUSPECTS.values() if row.lesson == topic))
