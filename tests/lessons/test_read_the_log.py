"""Lesson 11: three causes of one symptom, what trainers print, the box for a log, and the pictures."""

import math

import pytest
import torch

import nanlab
from nanlab import diagnose, suspects
from nanlab.course import questions
from nanlab.course.history import History
from nanlab.lessons import loss_explosion, padding_row, read_the_log
from nanlab.lessons.read_the_log import LogLab, failure, printed
from nanlab.lessons.read_the_log.lab import WAITING
from nanlab.lessons.read_the_log.pictures import cures, log_curve

CAUSES = list(read_the_log.CAUSES)


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_kills_the_run_in_batch_five(cause):
    history = read_the_log.run(cause)
    assert history.first_bad_step == failure.FIRST_BAD_STEP
    assert math.isnan(history.loss[-1])


def test_the_three_causes_print_the_same_loss_to_the_last_byte():
    assert len({read_the_log.log(read_the_log.run(cause)) for cause in CAUSES}) == 1


def test_the_run_with_a_row_of_zeros_is_that_of_lesson_03():
    ours, theirs = read_the_log.run("a row of zeros"), padding_row.run()
    assert ours.loss[:5] == pytest.approx(theirs.loss[:5], rel=1e-6)
    assert ours.first_bad_step == theirs.first_bad_step


def test_the_gradient_norm_sets_one_of_the_three_apart():
    logs = [read_the_log.log(read_the_log.run(cause, stop=False), "loss", "grad_norm") for cause in CAUSES]
    assert logs[0] == logs[1] != logs[2]


def test_a_batch_without_rows_is_forgotten_one_step_later():
    history = read_the_log.run("no row at all", stop=False)
    assert history.gradient_norm[5] == 0
    assert history.first_bad_step == 5 and math.isfinite(history.loss[6])


@pytest.mark.parametrize(("cause", "form"), [*zip(CAUSES, ["0/0", "nan_in", "0/0 (mean of empty)"], strict=True)])
def test_the_hunt_tells_the_three_apart_where_the_log_cannot(cause, form):
    assert nanlab.hunt(read_the_log.bad_step(cause)).form == form


@pytest.mark.parametrize("place", range(3))
def test_each_fix_cures_its_cause_and_no_other(place):
    fix = read_the_log.FIXES[place]
    assert [read_the_log.run(cause, **fix.knobs).finite for cause in CAUSES] == [k == place for k in range(3)]


@pytest.mark.parametrize("place", range(3))
def test_a_cured_run_agrees_with_float64(place):
    knobs = read_the_log.FIXES[place].knobs
    ours = read_the_log.run(CAUSES[place], **knobs).loss
    exact = read_the_log.run(CAUSES[place], **knobs, dtype=torch.float64).loss
    assert ours == pytest.approx(exact, abs=1e-5)


def test_a_cause_that_is_not_known_is_refused():
    with pytest.raises(KeyError):
        read_the_log.batches("bad luck")


def test_every_suspect_of_the_ten_runs_is_in_the_table():
    for name in {dead.suspect for dead in read_the_log.RUNS} | set(read_the_log.CAUSES.values()):
        suspects.get(name)


@pytest.mark.parametrize(
    ("quantity", "word", "least"), [("loss", "nan", 5), ("loss", "inf", 4), ("gradient", "nan", 6)]
)
def test_each_symptom_has_several_causes(quantity, word, least):
    shown = {dead.suspect for dead in read_the_log.RUNS if read_the_log.symptoms(dead.run())[quantity] == word}
    assert len(shown) == least


def test_a_log_prints_the_columns_that_were_asked_for():
    history = read_the_log.run("a row of zeros")
    first = read_the_log.log(history, "loss", "max_act", significant=2).splitlines()[0]
    assert first.startswith("step 0  loss 0.066  max_act ")


VIEW = "application/vnd.jupyter.widget-view+json"
LOG = "step 1 loss 2.31\nstep 2 loss 2.30\nstep 3 loss nan\n"


@pytest.fixture
def lab():
    made = LogLab()
    _ = made.widget
    return made


def press(lab, text):
    lab.asked({"press": 0, "texts": {"log": text}})


def test_the_button_diagnoses_what_was_pasted(lab):
    press(lab, LOG)
    assert "line 3" in lab.widget.shown["more"]
    assert lab.widget.shown["sentence"] == "Read. The diagnosis:"


def test_an_empty_box_is_answered_and_not_diagnosed(lab):
    press(lab, " \n")
    assert "nothing to read yet" in lab.widget.shown["sentence"]


@pytest.mark.parametrize("text", ["\x00\x01", "<script>alert(1)</script> loss nan", "no numbers here", "é" * 10_000])
def test_any_text_is_answered_and_none_of_it_runs(lab, text):
    press(lab, text)
    assert "<script" not in lab.widget.shown["more"]
    assert lab.widget.shown["sentence"] != WAITING


def test_a_log_can_stand_in_the_box_from_the_start():
    lab = LogLab(LOG)
    _ = lab.widget
    assert lab.widget.shown["controls"]["log"]["text"] == LOG


def test_what_is_stored_is_one_fixed_line(lab):
    before = lab._repr_mimebundle_()
    press(lab, LOG)
    after = lab._repr_mimebundle_()
    assert VIEW in before
    assert {k: v for k, v in before.items() if k != VIEW} == {k: v for k, v in after.items() if k != VIEW}


def test_the_curve_holds_what_the_log_prints_and_marks_the_first_bad_step():
    chart = log_curve("step 3  loss 1.5\nstep 4  loss 20\nstep 5  loss inf\n")
    assert list(chart.series[0].x) == [3, 4, 5]
    assert chart.series[0].y[:2] == [1.5, 20.0] and math.isinf(chart.series[0].y[2])
    assert [(mark.x, mark.label) for mark in chart.marks] == [(5, "inf at step 5")]


def test_a_finite_log_has_no_mark():
    assert log_curve("step 1 loss 2\nstep 2 loss 1\n").marks == []


def test_a_log_without_steps_is_drawn_record_by_record():
    chart = log_curve("loss: 2.5\nloss: 2.1\nloss: nan\n")
    assert (chart.x_label, chart.series[0].x, chart.marks) == ("record", None, [])


def test_a_log_without_a_loss_is_refused():
    with pytest.raises(ValueError, match="prints no loss"):
        log_curve("starting\nready\n")


def test_each_cure_helps_one_cause_only():
    body = [[cell.text for cell in row] for row in cures().rows[1:]]
    assert body == [["alive" if k == n else "dead" for k in range(3)] for n in range(3)]


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
    question = questions.load(f"11.{name}")
    return question.shows.strip("\n").splitlines()


def test_the_questions_of_lesson_11_show_what_the_runs_print():
    zeros = read_the_log.run("a row of zeros", stop=False)
    assert shown("first_report") == loss_explosion.run(lr=0.02).plain().splitlines()[1:]
    assert shown("second_report") == shown("three_programs") == read_the_log.log(zeros).splitlines()[2:6]
    assert shown("third_report") == printed.metric_without_samples().splitlines()[:4]
    assert shown("fourth_report") == printed.trainer(zeros).splitlines()[3:7]
    scales = [f"run {name}  {line}" for name in "AB" for line in printed.loss_scale(name == "A").splitlines()[:2]]
    assert shown("two_scales") == scales
