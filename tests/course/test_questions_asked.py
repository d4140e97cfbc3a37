"""No question lies unused: each is asked by a notebook. (Checkpoints are asked for as a whole.)"""

from pathlib import Path

from nanlab.course import questions
from nanlab.course.questions import asked_in

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def test_every_question_is_asked_somewhere():
    asked = {id for notebook in NOTEBOOKS.rglob("*.ipynb") for id in asked_in(notebook)}
    written = {one.id for prefix in questions.names() if prefix[0].isdigit() for one in questions.in_file(prefix)}
    assert written - asked == set()
