"""Questions: the most telling first, about what the log leaves out; their answers narrow down."""

import pytest

from nanlab.cli import main
from nanlab.doctor import diagnose
from nanlab.doctor.ask import information, questions
from nanlab.doctor.weigh import scores

CALM = "".join(f"step {i} loss 2.{i % 3}\n" for i in range(9)) + "step 9 loss nan\n"


def score(answer, name):
    return next((s.score for s in answer.suspects if s.name == name), 0.0)


def test_every_question_tells_something_and_none_tells_more_than_its_answers_can():
    for question in questions().values():
        assert 0 < information(question, scores([])) <= len(question.answers) - 1


def test_an_answer_moves_the_score_and_is_not_asked_again():
    before, after = diagnose(CALM), diagnose(CALM, precision="fp16")
    name = "fp16_overflow_or_no_scaler"
    assert score(after, name) > 2 * score(before, name)
    assert not any("[precision]" in text for text in after.ask_for)


def test_what_the_log_says_is_not_asked():
    assert not any("[precision]" in text for text in diagnose("precision: bf16\n" + CALM).ask_for)


def test_an_answer_on_the_command_line_narrows_down(tmp_path, capsys):
    path = tmp_path / "a.log"
    path.write_text(CALM, "utf-8")
    assert main(["diagnose", str(path), "--answer", "data=bad", "--answer", "before=calm"]) == 1
    assert "Bad data" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("given", "says"),
    [("precision=int3", "fp16, bf16, fp32"), ("colour=red", "there is no question"), ("fp16", "KEY=VALUE")],
)
def test_an_answer_that_is_none_is_refused_with_what_could_be_said(given, says, tmp_path, capsys):
    path = tmp_path / "a.log"
    path.write_text(CALM, "utf-8")
    assert main(["diagnose", str(path), "--answer", given]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
