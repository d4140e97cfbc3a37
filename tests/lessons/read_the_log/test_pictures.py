import math

import pytest

from nanlab.lessons.read_the_log.pictures import cures, log_curve


def test_the_curve_holds_what_the_log_prints_and_marks_the_first_bad_step():
    chart = log_curve("step 3  loss 1.5\nstep 4  loss 20\nstep 5  loss inf\n")
    assert list(chart.series[0].x) == [3, 4, 5]
    assert chart.series[0].y[:2] == [1.5, 20.0] and math.isinf(chart.series[0].y[2])
    assert [(mark.x, mark.label) for mark in chart.marks] == [(5, "inf at step 5")]


def test_a_finite_log_has_no_mark():
    assert log_curve("step 1 loss 2\nstep 2 loss 1\n").marks == ()


def test_a_log_without_steps_is_drawn_record_by_record():
    chart = log_curve("loss: 2.5\nloss: 2.1\nloss: nan\n")
    assert (chart.x_label, chart.series[0].x, chart.marks) == ("record", None, ())


def test_a_log_without_a_loss_is_refused():
    with pytest.raises(ValueError, match="prints no loss"):
        log_curve("starting\nready\n")


def test_each_cure_helps_one_cause_only():
    body = [[cell.text for cell in row] for row in cures().rows[1:]]
    assert body == [["alive" if k == n else "dead" for k in range(3)] for n in range(3)]
