"""The start page: the suggestion of a track, and the map with progress."""

import itertools
import json

import pytest

from nanlab import course
from nanlab.course.progress import progress
from nanlab.course.questions import asked_in
from nanlab.lessons.start_here.start import choose_track, course_map, find_root, suggest

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A repository with one beginner lesson, and a home of its own."""
    monkeypatch.setenv("NANLAB_HOME", str(tmp_path / "home"))
    notebooks = tmp_path / "repo" / "notebooks"
    (notebooks / "beginner").mkdir(parents=True)
    (notebooks / f"{course.START.name}.ipynb").write_text("{}")
    source = ['predict("02.third_loss")', "predict('02.first_bad')", 'predict("02.third_loss")']
    cells = {"cells": [{"cell_type": "code", "source": [line]} for line in source]}
    (notebooks / "beginner" / "02_loss_explosion.ipynb").write_text(json.dumps(cells))
    monkeypatch.chdir(notebooks)
    return tmp_path / "repo"


@pytest.mark.parametrize(
    ("answers", "track"),
    [
        ((0, 2, 2, 2), "beginner"),
        ((1, 0, 0, 1), "beginner"),
        ((1, 1, 1, 1), "developer"),
        ((2, 2, 0, 2), "developer"),
        ((2, 2, 2, 2), "researcher"),
        ((1, 2, 2, 2), "researcher"),
    ],
)
def test_four_answers_suggest_a_track(answers, track):
    assert suggest(answers) == track


def test_every_track_can_be_suggested():
    assert {suggest(a) for a in itertools.product(range(3), repeat=4)} == set(course.TRACKS)


def test_the_suggestion_stands_once_all_four_are_answered(house):
    chooser = choose_track()
    shown = chooser.widget.shown
    for n in range(4):
        chooser.asked({"name": str(n), "text": "2"})
        shown = chooser.widget.shown
        assert (f"{3 - n} to go" in shown["sentence"]) == (n < 3)
    assert "Suggested: developer" in shown["sentence"]


def test_the_map_links_to_what_is_there_and_shows_progress_live_only(house, monkeypatch):
    empty = course_map()._repr_mimebundle_()
    assert "not begun" in course_map().widget.shown["more"]
    monkeypatch.setenv("JPY_SESSION_NAME", str(house / "notebooks" / "beginner" / "02_loss_explosion.ipynb"))
    progress().record_answer("02.third_loss", "b", False)
    live = course_map().widget.shown["more"]
    assert "1 of 2 answered" in live
    assert 'href="beginner/02_loss_explosion.ipynb"' in live
    assert live.count("<a ") == 1
    progress().record_answer("02.first_bad", "b", True)
    progress().record_exercise("beginner", "02_loss_explosion")
    assert "✓ answered · exercise ✓" in course_map().widget.shown["more"]
    full = course_map()._repr_mimebundle_()
    assert {k: v for k, v in empty.items() if k != VIEW} == {k: v for k, v in full.items() if k != VIEW}
    assert "answered" not in full["text/html"] + full["text/plain"]


def test_an_answer_in_one_track_is_not_shown_in_another(house, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", str(house / "notebooks" / "developer" / "02_loss_explosion.ipynb"))
    progress().record_answer("02.third_loss", "b", False)
    assert "not begun" in course_map().widget.shown["more"]


def test_the_stored_map_names_every_lesson_and_depth(house):
    data = course_map()._repr_mimebundle_()
    for topic in course.TOPICS:
        assert topic.title in data["text/plain"] and topic.title in data["text/html"]
    for track in course.TRACKS:
        assert course.MINUTES[track] in data["text/plain"] and course.MINUTES[track] in data["text/html"]


def test_questions_of_a_notebook_are_counted_once(house):
    assert asked_in(house / "notebooks/beginner/02_loss_explosion.ipynb") == ["02.third_loss", "02.first_bad"]


def test_outside_of_the_repository_the_map_has_no_links(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_root(tmp_path) is None
    assert "<a " not in course_map().widget.shown["more"]


def test_all_answers_are_forgotten_after_one_more_question(house):
    progress().record_answer("02.third_loss", "b", False)
    chart = course_map()
    _ = chart.widget
    chart.asked({"press": 1, "texts": {}})
    assert len(progress().answered()) == 1, "nothing is forgotten before the question"
    chart.asked({"press": 0, "texts": {}})
    assert "Forget 1 answers" in chart.widget.shown["sentence"]
    chart.asked({"press": 1, "texts": {}})
    assert progress().answered() == {}


@pytest.mark.parametrize("broken", ['{"answers": {"x": 1}}', '{"answers": {"any/x": 1}}', '{"answers": []}', "[]", "1"])
def test_a_progress_file_of_another_shape_is_set_aside_with_a_note(house, tmp_path, broken):
    home = tmp_path / "home"
    home.mkdir()
    (home / "progress.json").write_text(broken)
    assert "kept as progress.unreadable-1.json" in course_map().widget.shown["sentence"]
    assert (home / "progress.unreadable-1.json").read_text() == broken
    progress().record_answer("02.third_loss", "b", False)
    assert course_map().widget.shown["sentence"] == ""
