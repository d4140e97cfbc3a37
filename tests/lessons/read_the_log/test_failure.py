import math

import pytest
import torch

import nanlab
from nanlab import suspects
from nanlab.lessons import padding_row, read_the_log

CAUSES = list(read_the_log.CAUSES)


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_kills_the_run_in_batch_five(cause):
    history = read_the_log.run(cause)
    assert history.first_bad_step == read_the_log.FIRST_BAD_STEP
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
