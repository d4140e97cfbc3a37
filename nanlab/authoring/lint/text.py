"""Rules about the prose of a notebook: how long, how much of it, and that pictures have words."""

import re
from collections.abc import Iterator
from statistics import median

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


def _amount(page: Page) -> Iterator[Finding]:
    ratio = len(page.text) / len(page.code)
    if not RATIO[0] <= ratio <= RATIO[1]:
        yield page.says(None, f"{len(page.text)} text cells and {len(page.code)} code cells; about one for each")
    usual = median(count_words(cell.source) for cell in page.text)
    if not USUAL_WORDS[0] <= usual <= USUAL_WORDS[1]:
        yield page.says(None, f"the median text cell has {usual:g} words; 35 to 55 read best", note=True)


def count_words(source: str) -> int:
    """Words of prose in Markdown: code blocks, formulas on their own lines, tags and link targets don't count."""
    return len(_WORD.findall(_NOT_PROSE.sub(" ", source)))
