"""Progress is kept in the learner's own file, and no trouble with that file is more than a line of text."""

import json
import os

import pytest

from nanlab import course
from nanlab.course.progress import home, progress, running_track


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NANLAB_HOME", str(tmp_path / "mine"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return tmp_path / "mine"


def test_nothing_is_written_until_there_is_something_to_keep(folder):
    assert progress().answered() == {}
    assert not folder.exists()


def test_answers_and_exercises_are_there_again_when_read_anew():
    progress().record_answer("02.third_loss", "b", False)
    progress().record_exercise("developer", "02_loss_explosion")
    kept = progress()
    assert kept.answered() == {"02.third_loss": {"committed": "b", "right": False}}
    assert kept.passed("developer", "02_loss_explosion")
    assert not kept.passed("beginner", "02_loss_explosion")


@pytest.mark.parametrize("track", course.TRACKS)
def test_an_answer_belongs_to_the_track_of_the_running_notebook(track, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", f"/somewhere/notebooks/{track}/02_loss_explosion.ipynb")
    assert running_track() == track
    progress().record_answer("02.x", "a", True)
    assert list(progress().answered(track)) == ["02.x"]
    assert not any(progress().answered(other) for other in course.TRACKS if other != track)


def test_two_notebooks_that_write_in_turn_lose_nothing():
    first, second = progress(), progress()
    first.record_answer("02.a", "a", True)
    second.record_answer("02.b", "b", True)
    first.record_answer("02.c", "c", True)
    assert set(progress().answered()) == {"02.a", "02.b", "02.c"}


@pytest.mark.parametrize("content", ["{", "[1, 2]", '{"answers": 3}', "", "\x00\x01", '"text"'])
def test_a_file_that_cannot_be_understood_is_kept_aside(folder, content):
    folder.mkdir()
    (folder / "progress.json").write_text(content)
    kept = progress()
    assert "could not be understood" in kept.note and "\n" not in kept.note
    kept.record_answer("02.a", "a", True)
    assert list(progress().answered()) == ["02.a"]
    assert (folder / "progress.unreadable-1.json").read_text() == content


def test_a_second_unreadable_file_does_not_overwrite_the_first(folder):
    folder.mkdir()
    for content in ("{one", "{two"):
        (folder / "progress.json").write_text(content)
        progress()
    assert [f.read_text() for f in sorted(folder.glob("progress.unreadable-*"))] == ["{one", "{two"]


def test_a_folder_that_cannot_be_made_is_one_line_and_the_answer_stays_for_now(folder):
    folder.write_text("a file stands where the folder should be")
    kept = progress()
    kept.record_answer("02.a", "a", True)
    assert "all else works without it" in kept.note and "\n" not in kept.note
    assert list(kept.answered()) == ["02.a"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_one_line(folder):
    folder.mkdir(mode=0o500)
    kept = progress()
    kept.record_answer("02.a", "a", True)
    assert "could not be saved" in kept.note


def test_the_file_is_replaced_in_one_step_and_nothing_else_is_left(folder):
    progress().record_answer("02.a", "a", True)
    assert [f.name for f in folder.iterdir()] == ["progress.json"]
    assert json.loads((folder / "progress.json").read_text())["answers"]


def test_without_a_setting_the_file_lies_in_the_home_folder(monkeypatch):
    monkeypatch.delenv("NANLAB_HOME")
    assert home().name == ".nanlab"
