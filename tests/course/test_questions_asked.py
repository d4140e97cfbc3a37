"""No question lies unused: each is asked by a notebook."""

from pathlib import Path

from nanlab.course import START, TOPICS, questions

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def test_every_question_is_asked_somewhere():
    asked = {id for notebook in NOTEBOOKS.rglob("*.ipynb") for id in questions.asked_in(notebook)}
    written = {question.id for topic in (START, *TOPICS) for question in questions.of(topic)}
    assert written - asked == set()
