"""A prediction shows one fixed text, is committed once, and reveals the same whatever was committed."""

import sys

import pytest

from nanlab import predict
from nanlab.course import TOPICS, questions
from nanlab.course.predict import UNANSWERED, Prediction, html, plain
from nanlab.course.progress import progress

VIEW = "application/vnd.jupyter.widget-view+json"
ID = "02.third_loss"


@pytest.fixture(autouse=True)
def own_file(tmp_path, monkeypatch):
    monkeypatch.setenv("NANLAB_HOME", str(tmp_path))


def right_letter(question):
    return "abcdefgh"[question.options.index(question.right)]


def parts(box):
    return {type(part).__name__: part for part in box.children}


def test_a_cell_shows_the_question_and_one_fixed_line():
    data = predict(ID)._repr_mimebundle_()
    assert set(data) == {VIEW, "text/plain", "text/html"}
    assert data["text/plain"].endswith(UNANSWERED)
    assert all(option.text in data["text/plain"] for option in questions.load(ID).options)


def test_what_is_stored_does_not_change_with_what_was_answered():
    before = predict(ID)._repr_mimebundle_()
    predict(ID).commit("a")
    after = predict(ID)._repr_mimebundle_()
    assert before["text/plain"] == after["text/plain"]
    assert before["text/html"] == after["text/html"]


@pytest.mark.parametrize("id", [question.id for topic in TOPICS for question in questions.of(topic)])
def test_the_answer_is_not_on_the_page(id):
    question = questions.load(id)
    stored = plain(question) + html(question)
    assert all(option.reason not in stored for option in question.options)
    assert not question.reason or question.reason not in stored


def test_the_right_answer_and_its_reason_are_revealed_whatever_was_committed():
    right = questions.load(ID).right
    for letter in "abcd":
        said = predict(ID).commit(letter)
        assert right.text in said and right.reason in said


def test_a_wrong_answer_is_met_with_its_own_reason():
    question = questions.load(ID)
    wrong = next(n for n, option in enumerate(question.options) if not option.right)
    assert question.options[wrong].reason in predict(ID).commit("abcd"[wrong])


def test_a_commit_is_for_good_until_the_cell_runs_again():
    prediction = predict(ID)
    prediction.commit("a")
    with pytest.raises(RuntimeError, match="run its cell again"):
        prediction.commit("b")
    assert predict(ID).committed is None


@pytest.mark.parametrize("answer", ["", "z", "ab", "1"])
def test_what_is_no_option_is_turned_down_and_nothing_is_committed(answer):
    prediction = predict(ID)
    with pytest.raises(ValueError, match="a, b, c, d"):
        prediction.commit(answer)
    assert prediction.committed is None
    assert progress().answered() == {}


def number():
    fields = {"text": "How many?", "kind": "number", "answer": 500.0, "tolerance": 0.5, "unit": "steps"}
    return questions._question("99", "n", fields | {"reason": "so it is", "below": "too few", "above": "too many"})


def test_a_number_is_judged_in_orders_of_magnitude():
    assert "That is right." in Prediction(number()).commit("1,000")
    assert "too few" in Prediction(number()).commit(5)
    assert "too many" in Prediction(number()).commit("1e6")
    with pytest.raises(ValueError, match="type one number"):
        Prediction(number()).commit("many")


def test_an_answer_is_kept_in_the_learners_progress():
    question = questions.load(ID)
    predict(ID).commit(right_letter(question))
    assert progress().answered() == {ID: {"committed": question.right.text, "right": True}}


def test_the_live_view_commits_once_and_folds_the_reasons():
    prediction = predict(ID)
    radio, button, answer = parts(prediction.widget)["RadioButtons"], *_last(prediction.widget)
    button.click()
    assert "Choose one first." in answer.value
    radio.index = 0
    button.click()
    assert prediction.committed == 0
    assert radio.disabled and button.disabled
    assert "<details><summary>" in answer.value
    assert questions.load(ID).right.reason in answer.value.replace("&#x27;", "'")


def _last(box):
    row, answer = box.children[-2:]
    return row.children[0], answer


def test_without_ipywidgets_the_question_can_still_be_read_and_answered(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    prediction = predict(ID)
    assert "pip install 'nanlab[course]'" in prediction._repr_mimebundle_()["text/plain"]
    assert "You committed" in prediction.commit("a")
