"""Rules about stored outputs: they must come out the same on another machine and show nothing of this one."""

import re
from collections.abc import Iterator

from nanlab.authoring import files
from nanlab.authoring.lint.code import ABSOLUTE_PATH, ADDRESS
from nanlab.authoring.lint.finding import Finding, Page

EXACT = "exact"  # the tag of a cell whose long numbers are the same on every machine, such as format limits
MOST_DIGITS = 5  # a sixth is almost always an unrounded number
_FLOAT = re.compile(r"(?<![\w.])\d+\.\d*(?:e[+-]?\d+)?(?![\w.]*\d)|(?<![\w.])\d+e[+-]?\d+", re.I)
_DRAWING = re.compile(r"<svg.*?</svg>|<style.*?</style>", re.S | re.I)
_TAG = re.compile(r"<[^>]*>")


def check(page: Page) -> Iterator[Finding]:
    for cell in page.code:
        errors = [output for output in cell.outputs if output.output_type == "error"]
        allowed = "raises-exception" in files.tags(cell)
        if errors and not allowed:
            yield page.says(cell, f"stores {errors[0].ename} and is not tagged raises-exception")
        if allowed and cell.execution_count and not errors:
            yield page.says(cell, "is tagged raises-exception and stores no error")
        for output in cell.outputs:
            yield from _output(page, cell, output)


def _output(page: Page, cell, output) -> Iterator[Finding]:
    if output.get("name") == "stderr":
        yield page.says(cell, f"stores text on stderr: {output.text.strip()[:60]!r}")
    if files.WIDGET_VIEW in output.get("data", {}):
        yield page.says(cell, "stores a widget's view: run 'nanlab author store'")
    if "application/javascript" in output.get("data", {}):
        yield page.says(cell, "stores JavaScript")
    text = text_of(output)
    for pattern, why in ((ABSOLUTE_PATH, "an absolute path"), (ADDRESS, "a memory address")):
        if found := pattern.search(text):
            yield page.says(cell, f"stores {why}: {found.group()}")
    if EXACT not in files.tags(cell):
        for number in filter(too_long, _FLOAT.findall(_TAG.sub(" ", text))):
            yield page.says(cell, f"stores {number}: four digits at most (or tag the cell '{EXACT}')")


def text_of(output) -> str:
    """The text of an output that nbval compares, drawings left out."""
    data = output.get("data", {})
    parts = [output.get("text", ""), output.get("evalue", ""), *output.get("traceback", [])]
    parts += [data.get(kind, "") for kind in ("text/plain", "text/html", "text/markdown", "text/latex")]
    return _DRAWING.sub(" ", "\n".join(part if isinstance(part, str) else "".join(part) for part in parts))


def too_long(number: str) -> bool:
    """True when `number` has a sixth significant digit (zeros at its end don't count)."""
    digits = number.lower().split("e")[0].replace(".", "").lstrip("0").rstrip("0")
    return len(digits) > MOST_DIGITS
