"""The six runs of the checkpoint: each is what its question shows, and each is told apart by what it shows."""

import math
from itertools import pairwise

import pytest
import torch

from nanlab import course, suspects
from nanlab.course import questions
from nanlab.lessons.recurrent_checkpoint.cases import CASES, log, outcome, reveal

each = pytest.mark.parametrize("letter", sorted(CASES))
RUNS = {letter: case.run() for letter, case in CASES.items()}


def finite(values):
    return [value for value in values if math.isfinite(value)]


@each
def test_a_question_shows_what_the_run_prints(letter):
    assert questions.load(f"checkpoint_06.run_{letter}").shows.strip("\n") == log(letter)


def test_each_of_the_six_lessons_is_there_once():
    lessons = [topic.name for topic in course.TOPICS[:6]]
    assert sorted(case.lesson for case in CASES.values()) == lessons


@each
def test_its_suspect_is_in_the_table_and_its_lesson_in_the_course(letter):
    case = CASES[letter]
    assert suspects.get(case.suspect).kind == "fault"
    assert case.lesson in {topic.name for topic in course.TOPICS}


def test_only_one_of_the_six_is_cured_by_a_lower_rate():
    low = {letter: outcome(case.run(lr_times=0.01)) for letter, case in CASES.items()}
    assert [letter for letter, ended in low.items() if ended == "learns"] == ["b"]


def test_float64_removes_what_the_format_made_and_nothing_else():
    twins = {letter: case.run(dtype=torch.float64) for letter, case in CASES.items()}
    assert [letter for letter, run in twins.items() if run.finite] == ["c", "e"]
    assert twins["b"].first_bad_step > RUNS["b"].first_bad_step
    assert all(twins[letter].first_bad_step == RUNS[letter].first_bad_step for letter in "af")


def test_what_a_divided_by_zero_first_is_nan_and_what_f_divided_first_is_inf():
    assert math.isnan(RUNS["a"].largest_activation[-1])
    assert RUNS["f"].largest_activation[-1] == math.inf


def test_b_climbs_and_d_leaps_out_of_calm():
    climbing, leaping = finite(RUNS["b"].gradient_norm), finite(RUNS["d"].gradient_norm)
    assert climbing == sorted(climbing)
    assert max(leaping[:-1]) <= leaping[0]
    assert leaping[-1] > 1e9 * leaping[0]


def test_the_largest_activation_of_c_grows_by_a_steady_factor_towards_the_limit_of_exp():
    scores = finite(RUNS["c"].largest_activation)
    assert all(1.2 < later / earlier < 1.4 for earlier, later in pairwise(scores))
    assert scores[-1] < 88.72 < scores[-1] * 1.3


def test_e_has_finite_values_and_gradients_that_are_all_zero():
    assert RUNS["e"].finite
    assert set(RUNS["e"].gradient_norm) == {0.0}


@each
def test_the_reveal_names_the_lesson_and_the_two_experiments(letter):
    said = reveal(letter)
    assert f"lesson {CASES[letter].lesson[:2]}" in said
    assert "float64" in said and "hundred times lower" in said
