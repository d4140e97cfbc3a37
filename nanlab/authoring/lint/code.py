"""Rules about the code of a notebook: how long its cells are, and what they must not do."""

import re
from collections.abc import Iterator
from statistics import median

from nanlab.authoring import files
from nanlab.authoring.lint.finding import Finding, Page

MOST_LINES = 20
MEDIAN_LINES = 3
ABSOLUTE_PATH = re.compile(r"(?<![\w.:/<)])/(?:home|Users|root|tmp|usr|opt|var|mnt|work|content)/\w|\b[A-Z]:\\\w")
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")

_BANS = (
    (re.compile(r"\bsys\.path\b"), "edits sys.path"),
    (re.compile(r"^\s*[!%]\s*(?:pip|conda|apt)", re.M), "installs something"),
    (re.compile(r"^\s*from\s+\S+\s+import\s+\*", re.M), "a star import"),
    (re.compile(r"\bwarnings\.(?:filterwarnings|simplefilter|catch_warnings)|-W\s*ignore"), "hides warnings"),
    (re.compile(r"\burllib\b|\brequests\.|\burlopen\b|\bhttpx\b|\btorch\.hub\b|\bdownload\s*=\s*True|\bwget\b|\bcurl\b"),
     "uses the network"),
    (ABSOLUTE_PATH, "an absolute path"),
    (ADDRESS, "a memory address"),
    (re.compile(r"\binteract(?:ive|ive_output|_manual)?\s*\(|\bOutput\s*\(|\bclear_output\b"),
     "an Output widget, interact or clear_output: nbval reads their content as extra output"),
    (re.compile(r";[ \t]*(?:#.*)?$", re.M), "a line ends with ';'"),
)  # fmt: skip
_TIMING = re.compile(r"\bperf_counter\b|\btime\.(?:time|monotonic|process_time)\s*\(|%%?timeit?\b|\btimeit\b")
_RANDOM = re.compile(r"\brand\w*\s*\(|\bnn\.\w+\s*\(|\bshuffle\s*=\s*True|\bmultinomial\b|\bdropout\b", re.I)


def check(page: Page) -> Iterator[Finding]:
    for cell in page.code:
        yield from _cell(page, cell)
    counted = [lines_of(cell.source) for cell in page.code]
    if page.kind in ("lesson", "solution") and counted and median(counted) > MEDIAN_LINES:
        text = f"the median code cell has {median(counted):g} lines; {MEDIAN_LINES} at most"
        yield page.says(None, text, note=page.kind == "solution")
    if page.kind in ("lesson", "solution", "start"):
        yield from _opening(page)


def _cell(page: Page, cell) -> Iterator[Finding]:
    if not cell.source.strip():
        yield page.says(cell, "an empty code cell")
    if (lines := lines_of(cell.source)) > MOST_LINES:
        yield page.says(cell, f"{lines} lines of code; {MOST_LINES} at most")
    for pattern, why in _BANS:
        if pattern.search(cell.source):
            yield page.says(cell, why)
    if _TIMING.search(cell.source) and "unrun" not in files.tags(cell):
        yield page.says(cell, "times something and is not tagged unrun")


def _opening(page: Page) -> Iterator[Finding]:
    """Imports and seed stand where the learner sees them."""
    whole = "\n".join(cell.source for cell in page.code)
    if page.code and not re.search(r"^\s*(?:import|from) ", whole, re.M):
        yield page.says(None, "no cell imports anything: imports are in sight, not hidden")
    draw = _RANDOM.search(whole)
    seed = re.search(r"\bmanual_seed\s*\(", whole)
    if draw and (seed is None or seed.start() > draw.start()):
        yield page.says(None, f"'{draw.group().strip()}' may draw random numbers before any manual_seed(…) in sight")


def lines_of(source: str) -> int:
    """Lines with something on them, solution marks not counted."""
    return sum(1 for line in source.splitlines() if line.strip() and not line.strip().startswith("### "))
