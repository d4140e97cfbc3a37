"""Rules about the prose of a notebook: how long, how much of it, and that pictures have words."""

import re
from collections.abc import Iterator
from itertools import takewhile
from statistics import median

from nanlab import course
from nanlab.authoring import files
from nanlab.authoring.lint.finding import Finding, Page

MOST_WORDS = 120
USUAL_WORDS = (35, 55)
RATIO = (0.5, 2.0)  # text cells for each code cell
_NOT_PROSE = re.compile(
    r"```.*?```|<[^>]+>|\$\$.*?\$\$|(?<=\])\([^)]*\)|https?://\S+|^\s*\|?[-:| ]+\|?\s*$", re.S | re.M
)
_WORD = re.compile(r"\w[\w'’.,-]*")
_NAMELESS = re.compile(r"!\[\s*\]\(|<img(?![^>]*\balt=)", re.I)
_ABSOLUTE = re.compile(r"\]\(\s*(/|file:|[A-Za-z]:\\)")


_A_MINUTE = 200  # words
_CODE, _QUESTION = 0.5, 0.75  # minutes for a code cell and for a question
_LESSON = re.compile(r"\b[Ll]esson (\d\d)\b")


def check(page: Page) -> Iterator[Finding]:
    for cell in page.text:
        words = count_words(cell.source)
        if words > MOST_WORDS:
            yield page.says(cell, f"{words} words; {MOST_WORDS} at most")
        if _NAMELESS.search(cell.source):
            yield page.says(cell, "a picture without a text alternative")
        if _ABSOLUTE.search(cell.source):
            yield page.says(cell, "a link to an absolute path")
    if page.kind in ("lesson", "solution") and page.code and page.text:
        yield from _amount(page)
    if page.kind == "lesson":
        yield from _length(page)
        yield from _promises(page)


def _amount(page: Page) -> Iterator[Finding]:
    ratio = len(page.text) / len(page.code)
    if not RATIO[0] <= ratio <= RATIO[1]:
        yield page.says(None, f"{len(page.text)} text cells and {len(page.code)} code cells; about one for each")
    usual = median(count_words(cell.source) for cell in page.text)
    if not USUAL_WORDS[0] <= usual <= USUAL_WORDS[1]:
        yield page.says(None, f"the median text cell has {usual:g} words; 35 to 55 read best", note=True)


def minutes(page: Page) -> float:
    """How long the lesson takes a reader: its words, its code cells and its questions, up to an appendix."""
    cells = list(takewhile(lambda cell: not cell.source.startswith("## Appendix"), page.notebook.cells))
    words = sum(count_words(cell.source) for cell in cells if cell.cell_type == "markdown")
    questions = sum(files.asks(cell) for cell in cells)
    code = sum(cell.cell_type == "code" for cell in cells) - questions
    return words / _A_MINUTE + code * _CODE + questions * _QUESTION


def _length(page: Page) -> Iterator[Finding]:
    promised = int(course.MINUTES[page.path.parent.name].split("–")[-1])
    if (takes := minutes(page)) > promised:
        advice = "cut, or move to an appendix"
        yield page.says(None, f"takes {takes:.0f} minutes and promises {promised}: {advice}", note=True)


def _promises(page: Page) -> Iterator[Finding]:
    """A lesson that the text names has to be there."""
    there = {path.stem[:2] for path in page.path.parent.glob("[0-9][0-9]_*.ipynb")}
    for cell in page.text:
        for number in _LESSON.findall(cell.source):
            if number not in there:
                yield page.says(cell, f"names lesson {number}, which is not there", note=True)


def count_words(source: str) -> int:
    """Words of prose in Markdown: code blocks, formulas on their own lines, tags and link targets don't count."""
    return len(_WORD.findall(_NOT_PROSE.sub(" ", source)))
