import math

import pytest

from nanlab import diagnose
from nanlab.course import questions
from nanlab.course.history import History
from nanlab.lessons import loss_explosion, read_the_log
from nanlab.lessons.read_the_log import printed


def test_a_metric_without_samples_is_nan_while_the_loss_is_finite():
    lines = printed.metric_without_samples().splitlines()
    assert all(line.endswith("nan") for line in lines)
    assert all(math.isfinite(float(line.split()[3])) for line in lines)
    assert diagnose("\n".join(lines)).verdict == "harmless"


def test_the_scale_settles_after_two_skips():
    text = printed.loss_scale(settles=True)
    assert [line.endswith("skipped") for line in text.splitlines()] == [True, True, False, False, False, False]
    assert diagnose(text).verdict == "harmless"


def test_the_scale_falls_without_end_when_the_forward_pass_overflows():
    text = printed.loss_scale(settles=False, steps=8)
    assert all(line.endswith("skipped") and "grad_norm nan" in line for line in text.splitlines())
    assert diagnose(text).verdict == "fault"


def runs(*losses):
    return History(loss=list(losses), gradient_norm=[1.0] * len(losses))


def test_the_trainer_prints_zero_for_a_window_of_nothing_but_nan():
    assert "'loss': 0.0," in printed.trainer(runs(1.0, math.nan)).splitlines()[1]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_trainer_puts_the_mean_of_the_window_in_place_of_a_bad_loss(bad):
    # 0.4, then 0.4 / (1 + 1) for the bad one: (0.4 + 0.2) / 2
    assert "'loss': 0.3," in printed.trainer(runs(0.4, bad), every=2)


def test_a_trainer_that_logs_every_other_step_hides_one_bad_batch_from_every_word_search():
    text = printed.trainer(read_the_log.run("no row at all", stop=False), every=2)
    assert "nan" not in text and "inf" not in text


def shown(name):
    question = next(q for q in questions.in_file("11") if q.id.endswith(name))
    return question.shows.strip("\n").splitlines()


def test_the_questions_of_lesson_11_show_what_the_runs_print():
    zeros = read_the_log.run("a row of zeros", stop=False)
    assert shown("first_report") == loss_explosion.run(lr=0.02).plain().splitlines()[1:]
    assert shown("second_report") == shown("three_programs") == read_the_log.log(zeros).splitlines()[2:6]
    assert shown("third_report") == printed.metric_without_samples().splitlines()[:4]
    assert shown("fourth_report") == printed.trainer(zeros).splitlines()[3:7]
    scales = [f"run {name}  {line}" for name in "AB" for line in printed.loss_scale(name == "A").splitlines()[:2]]
    assert shown("two_scales") == scales
