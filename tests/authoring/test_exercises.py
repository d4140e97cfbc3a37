"""An exercise is its solution without the answers."""

import json
from pathlib import Path

import pytest
from nbformat import v4

from nanlab.authoring import exercises, files

ANSWER = 'def double(x):\n    ### BEGIN SOLUTION: return "twice" x\n    return 2 * x\n    ### END SOLUTION'
CHECK = "assert double(2) == 4\nprint('right')\n### BEGIN HIDDEN TESTS\nassert double(3) == 6\n### END HIDDEN TESTS"


@pytest.fixture
def solution(page) -> Path:
    right = v4.new_output("stream", name="stdout", text="right\n")
    check = page.code("check", CHECK, "nbval-check-output", outputs=[right], execution_count=3)
    check.metadata.nbgrader = {"points": 3}
    cells = (
        page.text("title", "# T"),
        page.code("answer", ANSWER, execution_count=1),
        page.code("word", "### BEGIN SOLUTION\n### STUB word = ...\nword = 'inf'\n### END SOLUTION", execution_count=2),
        check,
        page.text("why", "The reason."),
    )
    cells[-1].metadata.tags = ["solution-only"]
    return page(*cells, at="solutions/developer/page.ipynb")


@pytest.fixture
def exercise(solution, tmp_path) -> dict:
    """The cells of the generated exercise by id."""
    exercises.generate(tmp_path)
    return {cell.id: cell for cell in files.read(tmp_path / "exercises/developer/page.ipynb").cells}


def test_an_answer_becomes_a_stub_that_asks_for_it(exercise):
    assert exercise["answer"].source == 'def double(x):\n    raise NotImplementedError("return \\"twice\\" x")'


def test_a_given_stub_stands_in_for_the_answer(exercise):
    assert exercise["word"].source == "word = ..."


def test_hidden_tests_and_cells_for_the_solution_alone_are_left_out(exercise):
    assert exercise["check"].source == "assert double(2) == 4\nprint('right')" and "why" not in exercise


def test_a_check_keeps_the_solutions_output_and_nothing_else_does(exercise):
    assert exercise["check"].outputs[0].text == "right\n" and exercise["check"].execution_count == 3
    assert exercise["answer"].execution_count is None


def test_cells_carry_nbgraders_marks(exercise):
    answer, check = exercise["answer"].metadata.nbgrader, exercise["check"].metadata.nbgrader
    assert answer.solution and not answer.grade and not answer.locked and answer.grade_id == "answer"
    assert check.grade and check.locked and check.points == 3 and not check.solution and check.schema_version == 3


def test_a_second_run_changes_nothing_and_check_agrees(exercise, tmp_path):
    assert exercises.generate(tmp_path) == [] == exercises.generate(tmp_path, check=True)


def test_a_change_of_the_exercise_is_found_and_undone(exercise, tmp_path):
    path = tmp_path / "exercises/developer/page.ipynb"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"twice", b"thrice"))
    assert exercises.generate(tmp_path, check=True) == [path]
    exercises.generate(tmp_path)
    assert path.read_bytes() == before


def test_an_exercise_without_a_solution_is_found_and_removed(exercise, solution, tmp_path):
    solution.unlink()
    path = tmp_path / "exercises/developer/page.ipynb"
    assert exercises.generate(tmp_path, check=True) == [path] and path.exists()
    exercises.generate(tmp_path)
    assert not path.exists()


def test_a_mark_without_its_partner_is_told(solution):
    raw = json.loads(solution.read_text())
    raw["cells"][1]["source"] = "### BEGIN SOLUTION\nx = 1"
    solution.write_text(json.dumps(raw))
    with pytest.raises(ValueError, match=r"page\.ipynb, cell 'answer': a BEGIN or END mark has no partner"):
        exercises.generate(solution.parents[2])


def test_the_marks_are_those_that_nbgrader_reads():
    """Its preprocessors look for these words in a line."""
    assert exercises.stub("### BEGIN SOLUTION\nx = 1\n### END SOLUTION") == (
        'raise NotImplementedError("write this part")'
    )
