"""Generate an exercise from its solution, with nbgrader's own marks, so that a class that uses nbgrader can take both.

In the solution notebook:

- ``### BEGIN SOLUTION`` … ``### END SOLUTION`` become ``raise NotImplementedError("…")``. Text after a colon
  (``### BEGIN SOLUTION: keep the sum in range``) becomes its message. Lines ``### STUB answer = None`` between the two
  are put there in its stead.
- ``### BEGIN HIDDEN TESTS`` … ``### END HIDDEN TESTS`` are left out.
- A cell tagged ``nbval-check-output`` is a check: it keeps the solution's output, which nbval compares. Its points are
  in ``metadata.nbgrader.points`` (1 when nothing is said).
- A cell tagged ``solution-only`` is left out.
"""

import json
import re
from copy import deepcopy
from pathlib import Path

from nbformat import NotebookNode

from nanlab.authoring import files

_SOLUTION = re.compile(
    r"^(?P<indent>[ \t]*)### BEGIN SOLUTION(?::[ ]*(?P<ask>.*?))?[ ]*\n(?P<body>.*?)"
    r"^[ \t]*### END SOLUTION[ ]*(?:\n|\Z)",
    re.M | re.S,
)
_HIDDEN = re.compile(r"^[ \t]*### BEGIN HIDDEN TESTS.*?^[ \t]*### END HIDDEN TESTS[ ]*(?:\n|\Z)", re.M | re.S)
_STUB = re.compile(r"^[ \t]*### STUB ?(.*)$", re.M)
_MARK = re.compile(r"^[ \t]*###\s*(BEGIN|END) (SOLUTION|HIDDEN TESTS)", re.M)


def generate(root: Path, *, check: bool = False) -> list[Path]:
    """Bring every exercise under `root` up to date with its solution and return the files that were not.

    Exercises whose solution is gone are returned too (and removed). With `check`, nothing is written.
    """
    stale = []
    solutions = files.find(root, "solutions")
    for solution in solutions:
        notebook = files.read(solution)
        mark(notebook)
        exercise = root / "exercises" / solution.relative_to(root / "solutions")
        for made, path in ((notebook, solution), (exercise_of(notebook, solution.name), exercise)):
            if not path.is_file() or path.read_text(encoding="utf-8") != files.text_of(made):
                stale.append(path)
                if not check:
                    files.write(made, path)
    return stale + _orphans(root, solutions, check)


def exercise_of(solution: NotebookNode, name: str = "solution") -> NotebookNode:
    """The exercise of a marked `solution` notebook, as a new notebook. Raises ValueError on marks that do not pair."""
    made = deepcopy(solution)
    made.cells = [cell for cell in made.cells if "solution-only" not in files.tags(cell)]
    for cell in made.cells:
        if cell.cell_type != "code":
            continue
        cell.source = stub(cell.source)
        if _MARK.search(cell.source):
            raise ValueError(f"{name}, cell '{cell.id}': a BEGIN or END mark has no partner")
        if "nbval-check-output" not in files.tags(cell):
            cell.outputs, cell.execution_count = [], None
    return made


def stub(source: str) -> str:
    """What a learner gets in the stead of a solution cell's `source`."""
    return _HIDDEN.sub("", _SOLUTION.sub(_ask, source)).rstrip("\n")


def mark(notebook: NotebookNode) -> None:
    """Give the answer and check cells of a solution `notebook` their nbgrader metadata, in place."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        check, answer = "nbval-check-output" in files.tags(cell), bool(_SOLUTION.search(cell.source))
        given = cell.metadata.pop("nbgrader", {})
        if check or answer:
            points = {"points": given.get("points", 1)} if check else {}
            cell.metadata["nbgrader"] = {
                "grade": check, "grade_id": cell.id, "locked": not answer, "schema_version": 3,
                "solution": answer, "task": False, **points,
            }  # fmt: skip


def _ask(region: re.Match) -> str:
    given = _STUB.findall(region["body"])
    message = json.dumps(region["ask"] or "write this part", ensure_ascii=False)  # in double quotes
    return "".join(f"{region['indent']}{line}\n" for line in given or [f"raise NotImplementedError({message})"])


def _orphans(root: Path, solutions: list[Path], check: bool) -> list[Path]:
    wanted = {path.relative_to(root / "solutions") for path in solutions}
    found = files.find(root, "exercises")
    orphans = [path for path in found if path.relative_to(root / "exercises") not in wanted]
    for path in orphans:
        if not check:
            path.unlink()
    return orphans
