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


def test_a_commit_is_for_good_until_it_is_taken_back():
    prediction = predict(ID)
    prediction.commit("a")
    with pytest.raises(RuntimeError, match="answered"):
        prediction.commit("b")
    prediction.forget()
    assert progress().answered() == {}
    assert prediction.commit("b")


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
    with pytest.raises(ValueError, match="“many” is not a number"):
        Prediction(number()).commit("many")


def test_an_answer_is_kept_in_the_learners_progress():
    question = questions.load(ID)
    predict(ID).commit(right_letter(question))
    assert progress().answered() == {ID: {"committed": question.right.text, "right": True}}


def press(prediction, label, answer=""):
    place = prediction.widget.form["buttons"].index(label)
    prediction.view.asked({"press": place, "texts": {"answer": answer}})
    return prediction.widget.shown


def test_the_live_view_commits_once_and_folds_the_reasons():
    prediction = predict(ID)
    assert "Choose one first." in press(prediction, "Commit")["sentence"]
    shown = press(prediction, "Commit", "0")
    assert prediction.committed == 0
    assert shown["fixed"] and [button["hidden"] for button in shown["buttons"]] == [True, False]
    assert "<details><summary>" in shown["more"]
    assert questions.load(ID).right.reason in shown["more"].replace("&#x27;", "'")


def test_a_cell_that_runs_again_shows_the_answer_of_before_and_can_begin_anew():
    press(predict(ID), "Commit", "1")
    again = predict(ID)
    shown = again.widget.shown
    assert shown["controls"]["answer"]["text"] == "1" and shown["fixed"]
    assert shown["sentence"].startswith("Committed earlier: ")
    shown = press(again, "Answer anew")
    assert not shown["fixed"] and shown["more"] == "" and shown["controls"]["answer"]["text"] == ""
    assert progress().answered() == {}


def test_a_number_is_remembered_in_its_unit():
    press(Prediction(number()), "Commit", "1,000")
    assert Prediction(number()).widget.shown["sentence"] == "Committed earlier: 1000 steps"


def test_an_answer_to_a_question_that_has_changed_is_not_shown():
    progress().record_answer(ID, "an option that is no more", False)
    assert predict(ID).widget.shown["sentence"] == "Not answered yet."


def test_without_ipywidgets_the_question_can_still_be_read_and_answered(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanlab.course.front.component", None)
    monkeypatch.setitem(sys.modules, "nanlab.course.front.plain", None)
    prediction = predict(ID)
    assert "pip install 'nanlab[course]'" in prediction._repr_mimebundle_()["text/plain"]
    assert "You committed" in prediction.commit("a")
