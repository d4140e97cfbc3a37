"""Rules about a notebook as a whole: its cells' ids, its sections, its metadata, the order in which it was run."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from nanlab.authoring import files
from nanlab.authoring.lint.finding import Finding, Page

SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
RANDOM_ID = re.compile(r"(?=.*\d)[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-[0-9a-f]{12})?")  # what editors make up
SECTIONS = ("What to remember", "Sources")


def check(page: Page) -> Iterator[Finding]:
    yield from _ids(page)
    yield from _title(page)
    yield from _metadata(page)
    if page.kind == "lesson":
        yield from _sections(page)
        yield from _answers(page)
    if page.kind in ("start", "lesson", "solution"):
        yield from _counts(page)


def _ids(page: Page) -> Iterator[Finding]:
    counted = Counter(cell.id for cell in page.notebook.cells)
    for cell in page.notebook.cells:
        if counted[cell.id] > 1:
            yield page.says(cell, "another cell has the same id")
        elif not SLUG.fullmatch(cell.id) or RANDOM_ID.fullmatch(cell.id):
            yield page.says(cell, "a cell's id is a few words such as first-bad-step, so that it can be named")


def _title(page: Page) -> Iterator[Finding]:
    first = page.notebook.cells[0] if page.notebook.cells else None
    if first is None or first.cell_type != "markdown" or not first.source.startswith("# "):
        yield page.says(first, "the first cell is the title, '# …'")


def _sections(page: Page) -> Iterator[Finding]:
    ids = [cell.id for cell in page.notebook.cells]
    end = ids.index("next") + 1 if "next" in ids else len(ids) - 1
    if ids[1:2] != ["links"] or ids[end : end + 1] != ["links-end"]:
        yield page.says(None, "the cells 'links' and 'links-end' are not in place: run 'nanlab author links'")
    headings = [
        line.lstrip("# ").strip().lower() for cell in page.text for line in cell.source.splitlines() if line[:1] == "#"
    ]
    for section in SECTIONS:
        if not any(heading.startswith(section.lower()) for heading in headings):
            yield page.says(None, f"no section is headed '{section}'")


def _answers(page: Page) -> Iterator[Finding]:
    """What stands under a question is on screen with it: text there gives the answer away, a new section does not."""
    for cell, after in pairwise(page.notebook.cells):
        if files.asks(cell) and after.cell_type == "markdown" and not after.source.startswith("#"):
            advice = "text stands right under the question: let the code that answers it come first"
            yield page.says(cell, advice, note=True)
    for cell in files.reveals(page.notebook):
        if not cell.metadata.get("jupyter", {}).get("outputs_hidden"):
            yield page.says(cell, "the answer of the question above is in sight: run 'nanlab author store'")


def _metadata(page: Page) -> Iterator[Finding]:
    extra = set(page.notebook.metadata) - {"kernelspec", "language_info"}
    if extra:
        yield page.says(None, f"metadata that is not stored: {', '.join(sorted(extra))}")
    if page.notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        yield page.says(None, "the kernel is not python3")
    for cell in page.notebook.cells:
        extra = set(cell.metadata) - files.KEPT_METADATA
        if extra:
            yield page.says(cell, f"metadata that is not stored: {', '.join(sorted(extra))}")


def _counts(page: Page) -> Iterator[Finding]:
    run = [cell for cell in page.code if "unrun" not in files.tags(cell)]
    for number, cell in enumerate(run, start=1):
        if cell.execution_count != number:
            yield page.says(cell, f"was run as {cell.execution_count}, not {number}: run 'nanlab author store'")
            return
    for cell in page.code:
        if "unrun" in files.tags(cell) and (cell.outputs or cell.execution_count):
            yield page.says(cell, "is tagged unrun and stores an output")
