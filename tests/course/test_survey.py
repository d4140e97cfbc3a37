"""A map's runs: coarse ones first, each cell as the lab itself would have it, stopped and begun again on demand."""

import asyncio

import pytest

from nanlab.course.lab.survey import Survey, coarse_first
from nanlab.lessons import loss_explosion
from nanlab.lessons.loss_explosion import ExplosionLab, landscape
from nanlab.lessons.padding_row import PaddingLab
from nanlab.lessons.recurrent import RecurrentLab
from nanlab.lessons.small_boxes import HalfLab
from nanlab.lessons.softmax import SoftmaxLab


@pytest.fixture
def survey():
    return Survey(ExplosionLab(), lambda: None)


def test_coarse_first_makes_every_cell_once_and_every_fourth_at_the_beginning():
    cells = coarse_first(19, 13)
    assert len(set(cells)) == len(cells) == 19 * 13
    first = cells[-20:]
    assert all(x % 4 == 0 and y % 4 == 0 for x, y in first)


def test_each_cell_says_what_the_lab_says_at_its_settings(survey):
    survey.finish()
    columns = len(survey.map.xs)
    for x, y in ((0, 0), (14, 8), (18, 12), (6, 8)):
        lab = ExplosionLab(**survey.settings(x, y))
        kind, mark = lab.fate(lab.result)
        assert survey.cells[y * columns + x] == {"kind": kind, "mark": mark}
    kinds = {cell["kind"] for cell in survey.cells}
    assert kinds == set(range(len(landscape.KINDS))), "the map shows every kind there is"


@pytest.mark.parametrize("kind", [PaddingLab, SoftmaxLab, RecurrentLab, HalfLab])
def test_every_map_tells_at_least_three_kinds_apart_and_has_the_lab_on_it(kind):
    survey = Survey(kind(depth="researcher"), lambda: None)
    survey.finish()
    assert len({cell["kind"] for cell in survey.cells}) >= 3
    assert survey.here() is not None
    columns, rows = len(survey.map.xs), len(survey.map.ys)
    for line in survey.state()["lines"]:
        assert all(0 <= x <= columns - 0.5 and 0 <= y < rows for x, y in line["points"])


def test_the_runs_are_made_between_other_work_and_can_be_stopped(survey):
    async def watch():
        survey.start()
        while sum(cell is not None for cell in survey.cells) < 20:
            await asyncio.sleep(0.001)
        survey.stop()
        done = sum(cell is not None for cell in survey.cells)
        await asyncio.sleep(0.05)
        assert sum(cell is not None for cell in survey.cells) == done < len(survey.cells)
        assert not survey.state()["working"]

    asyncio.run(watch())


def test_a_control_off_the_map_begins_it_anew_and_one_on_it_does_not(survey):
    survey.finish()
    survey.lab.set(lr=0.01)
    survey.settings_changed()
    assert None not in survey.cells
    survey.lab.set(dtype="float16")
    survey._begin()
    assert survey.cells.count(None) == len(survey.cells)


def test_the_lab_stands_in_the_cell_nearest_to_its_settings(survey):
    assert survey.settings(*survey.here()) == {"lr": 0.1, "scale": 10.0}
    survey.lab.set(lr=2e-6)
    assert survey.here() is None


def test_the_line_of_theory_runs_where_learning_ends():
    """Up to a factor of three in the learning rate: 2/λmax is taken at the first step, and the curvature changes."""
    lab = ExplosionLab(depth="researcher")
    survey = Survey(lab, lambda: None)
    assert survey.state()["lines"] == []
    survey.finish()
    (line,) = survey.state()["lines"]
    columns = len(survey.map.xs)
    for x, y in line["points"]:
        row = [cell["kind"] for cell in survey.cells[y * columns : (y + 1) * columns]]
        dead = [n for n, kind in enumerate(row) if kind in (landscape.DIES, landscape.DIES_AT_ONCE)]
        assert not dead or abs(min(dead) - x) < 2.5


def test_the_curvature_of_the_standard_run_is_the_one_that_the_lesson_prints():
    assert 2 / landscape.largest_curvature(10.0, 1.0) == pytest.approx(0.0036, rel=0.02)
    assert loss_explosion.FIXES[0].why.count("0.0036") == 1
