"""Every question of the course keeps the rules; each one is tested by being there."""

import math

import pytest

from nanlab.course import START, TOPICS, questions

ALL = [question for topic in (START, *TOPICS) for question in questions.of(topic)]


def test_there_are_questions():
    assert len(ALL) > 5


@pytest.mark.parametrize("question", ALL, ids=lambda q: q.id)
def test_each_question_is_told_apart_by_its_options_and_reasons(question):
    assert question.text == question.text.strip()
    assert len({option.reason for option in question.options}) == len(question.options)
    for option in question.options:
        assert len(option.text) <= 120, "an option is read at a glance"
        assert not option.text.lower().startswith(("all of the", "none of the"))


@pytest.mark.parametrize("question", [q for q in ALL if q.kind == "choice"], ids=lambda q: q.id)
def test_exactly_one_option_is_judged_right(question):
    assert sum(question.judge(n)[0] for n in range(len(question.options))) == 1


@pytest.mark.parametrize("question", [q for q in ALL if q.kind == "number"], ids=lambda q: q.id)
def test_a_number_is_right_at_its_answer_and_wrong_far_from_it(question):
    assert question.judge(question.answer) == (True, question.reason)
    if math.isfinite(question.answer):
        assert question.judge(question.answer * 1e4) == (False, question.above)
        assert question.judge(question.answer / 1e4) == (False, question.below)
        assert question.judge(-1.0)[0] is False or question.answer <= 0


def entry(**changes):
    options = [{"text": "a", "reason": "ra"}, {"text": "b", "reason": "rb", "right": True}]
    return {"text": "What?", "kind": "choice", "options": options} | changes


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"kind": "essay"}, "kind is"),
        ({"text": " "}, "needs a text"),
        ({"options": [{"text": "a", "reason": "r", "right": True}]}, "at least two"),
        ({"options": [{"text": "a", "reason": "r"}, {"text": "b", "reason": "r"}]}, "exactly one"),
        ({"options": [{"text": "a", "reason": "", "right": True}, {"text": "b", "reason": "r"}]}, "text and reason"),
        ({"options": [{"text": "a", "reason": "r", "right": True}, {"text": "a", "reason": "s"}]}, "read the same"),
        ({"colour": "red"}, "colour"),
        ({"kind": "number"}, "no options"),
        ({"kind": "number", "options": [], "answer": 3.0, "tolerance": 0.1}, "reason, below and above"),
        (
            {"kind": "number", "options": [], "answer": 3.0, "reason": "r", "below": "b", "above": "a"},
            "a tolerance above 0",
        ),
    ],
)
def test_a_question_that_breaks_a_rule_is_turned_down_by_name(changes, rule):
    with pytest.raises(ValueError, match=rule) as raised:
        questions._question("99", "odd", entry(**changes))
    assert "99.odd" in str(raised.value)


def test_a_misspelled_id_is_answered_with_those_there_are():
    with pytest.raises(KeyError, match=r"02\.third_loss"):
        questions.load("02.fourth_loss")
    with pytest.raises(KeyError, match="none"):
        questions.load("77.nothing")


def test_inf_as_an_answer_is_right_for_inf_alone():
    question = questions._question(
        "99", "inf", {"text": "?", "kind": "number", "answer": math.inf, "reason": "r", "below": "b", "above": "a"}
    )
    assert question.judge(math.inf)[0]
    assert question.judge(1e300) == (False, "b")
