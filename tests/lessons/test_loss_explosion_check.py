import math

import pytest
import torch

from nanlab.course import verdict
from nanlab.course.progress import progress
from nanlab.lessons.loss_explosion import check, failure


def standardised():
    inputs, targets = failure.data()
    return (inputs - inputs.mean(0)) / inputs.std(0), (targets - targets.mean()) / targets.std()


def scaled_inputs_only():
    return failure.data(divide_inputs_by=10.0)


def scaled_targets_only():
    inputs, targets = failure.data()
    return inputs, targets / 30


def another_task():
    inputs, targets = failure.data(scale=1.0)
    return inputs, torch.zeros_like(targets) + torch.randn(256, 1)


RIGHT = [
    (check.first_bad, (3, "loss"), "first bad value: correct\n"),
    (check.rate, (0.001,), "learning rate: correct\n"),
    (check.rate, (0.002,), "learning rate: correct\n"),
    (check.data, (lambda: failure.data(scale=1.0),), "data: correct\n"),
    (check.data, (standardised,), "data: correct\n"),
    (check.is_bad, (lambda loss: not math.isfinite(loss),), "is_bad: correct\n"),
    (check.is_bad, (lambda loss: loss - loss != 0,), "is_bad: correct\n"),
]

WRONG = [
    (check.first_bad, (4, "loss"), "first nan"),
    (check.first_bad, (2, "loss"), "first loss that prints inf"),
    (check.first_bad, (3, "gradient"), "computed after"),
    (check.first_bad, (3, "activation"), "What squares it"),
    (check.first_bad, (..., ...), "the stub"),
    (check.first_bad, ("3", "loss"), "whole number"),
    (check.first_bad, (3, "error"), "one of the words activation"),
    (check.rate, (0.1,), "lr_too_high"),
    (check.rate, (1e-6,), "Too small"),
    (check.rate, (-1.0,), "can't fall"),
    (check.rate, (math.nan,), "can't fall"),
    (check.rate, ("small",), "one number"),
    (check.data, (scaled_inputs_only,), "You scaled X after y was made"),
    (check.data, (scaled_targets_only,), "You scaled y alone"),
    (check.data, (failure.data,), "both still large"),
    (check.data, (another_task,), "task must stay the same"),
    (check.data, (lambda: torch.ones(256, 10),), "two tensors"),
    (check.data, (lambda: (torch.ones(4, 10), torch.ones(4, 1)),), r"shapes \(4, 10\)"),
    (check.data, (lambda: failure.data(scale=1e-3),), "all but zero"),
    (check.data, (lambda: [t.double() for t in failure.data(scale=1.0)],), "both in float32"),
    (check.is_bad, (lambda loss: loss != loss,), "inf comes first"),
    (check.is_bad, (lambda loss: loss > 1e38,), "like any other"),
    (check.is_bad, (lambda loss: abs(loss) == math.inf,), "loss > limit misses it"),
    (check.is_bad, (lambda loss: True,), "like any other"),
    (check.is_bad, (3,), "no function"),
    (check.is_bad, (lambda loss: 1 / 0,), "ZeroDivisionError"),
]


@pytest.mark.parametrize(("function", "answer", "line"), RIGHT)
def test_a_right_answer_gets_its_one_fixed_line(function, answer, line, capsys):
    function(*answer)
    assert capsys.readouterr().out == line


@pytest.mark.parametrize(("function", "answer", "word"), WRONG)
def test_each_tempting_wrong_answer_is_turned_down_by_name(function, answer, word, capsys):
    with pytest.raises(verdict.CheckFailed, match=word):
        function(*answer)
    assert capsys.readouterr().out == ""


def test_a_stub_function_is_told_that_nothing_is_written_yet():
    def stub(loss):
        raise NotImplementedError

    with pytest.raises(verdict.CheckFailed, match="Nothing is written yet"):
        check.is_bad(stub)


def test_all_questions_passed_in_a_track_are_noted_as_an_exercise_done(monkeypatch, tmp_path):
    monkeypatch.setenv("NANLAB_HOME", str(tmp_path))
    monkeypatch.setenv("JPY_SESSION_NAME", "exercises/developer/02_loss_explosion.ipynb")
    monkeypatch.setattr(verdict, "_RIGHT", {})
    for function, answer in ((f, a) for f, a, _ in RIGHT[:5]):
        function(*answer)
    assert not progress().passed("developer", "02_loss_explosion")
    check.is_bad(lambda loss: not math.isfinite(loss))
    assert progress().passed("developer", "02_loss_explosion")


def test_a_home_that_cannot_be_written_changes_no_verdict(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("NANLAB_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("JPY_SESSION_NAME", "exercises/developer/02_loss_explosion.ipynb")
    monkeypatch.setattr(verdict, "_RIGHT", {"02_loss_explosion": {"first bad value", "learning rate", "data"}})
    check.is_bad(lambda loss: not math.isfinite(loss))
    assert capsys.readouterr().out == "is_bad: correct\n"
