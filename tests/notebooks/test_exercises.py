"""Exercises are what their solutions generate; an untouched one fails in clear words and a filled-in one passes."""

import re
from pathlib import Path

import pytest
from nbformat import NotebookNode

from nanlab.authoring import exercises, files

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = files.find(ROOT, "solutions")
CLEAR = re.compile(r"not yet|NotImplementedError: \w+|hint:")  # what a check says, or what the stub asks for

each = pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda p: p.relative_to(ROOT / "solutions").as_posix())
pytestmark = pytest.mark.xdist_group("exercises")


def _exercise(solution: Path) -> Path:
    return ROOT / "exercises" / solution.relative_to(ROOT / "solutions")


def test_generating_the_exercises_again_changes_nothing():
    assert exercises.generate(ROOT, check=True) == [], "run: nanlab author exercises"


@each
def test_a_filled_in_copy_passes(solution: Path, nbval, tmp_path):
    """The learner's file, its answer cells filled from the solution, under ``pytest --nbval-lax``."""
    filled, solved = files.read(_exercise(solution)), files.read(solution)
    answers = {cell.id: cell.source for cell in solved.cells if _is(cell, "solution")}
    for cell in filled.cells:
        cell.source = answers.get(cell.id, cell.source)
    copy = tmp_path / solution.name
    files.write(filled, copy)
    assert nbval("as-is")(copy, lax=True) == {copy: []}


@each
def test_the_untouched_exercise_fails_in_clear_words(solution: Path, nbval):
    exercise = _exercise(solution)
    checks = [cell for cell in files.read(exercise).cells if _is(cell, "grade")]
    complaints = nbval("as-is")(exercise, lax=True)[exercise]
    assert checks and len(complaints) >= len(checks), "a check passes although nothing was answered"
    assert CLEAR.search("\n".join(complaints)), "nothing tells the learner what is missing"


@each
def test_an_exercise_gives_no_answer_away(solution: Path):
    text = _exercise(solution).read_text(encoding="utf-8")
    assert not re.search(r"### (BEGIN|END) |### STUB", text)


def _is(cell: NotebookNode, what: str) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get(what))
