"""A .venv is used when it works and made anew when it doesn't; nobody installs into it twice at a time."""

import json
import shutil
import sys
import threading

import pytest

from nanlab.setup import command, environment, packages
from nanlab.setup.course import Course
from nanlab.setup.packages import Torch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for Python are shell scripts")


@pytest.fixture
def nothing_to_download(monkeypatch):
    monkeypatch.setattr(packages, "torch_source", lambda *_: Torch("torch==2.13.0", "nowhere", "cpu"))
    monkeypatch.setattr(packages, "install", lambda *_: None)


def test_what_is_installed_is_not_installed_again(ready, monkeypatch):
    monkeypatch.setattr(packages, "install", lambda *_: pytest.fail("something was installed"))
    command.install(ready, "course")


def test_the_tests_need_more_than_the_course(ready):
    assert environment.installed(ready, "course") and not environment.installed(ready, "test")


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_a_change_of_what_is_needed_is_noticed(ready, name):
    path = ready.root / name
    path.write_text(path.read_text() + "\n# changed\n")
    assert not environment.installed(ready, "course")


def test_a_folder_that_was_moved_is_set_up_again(ready, tmp_path):
    shutil.copytree(ready.root, tmp_path / "moved", symlinks=True)
    moved = Course(tmp_path / "moved")
    assert not environment.installed(moved, "course") and not environment.usable(moved)


@pytest.mark.parametrize("stamp", ["", "[]", '"text"', "{}", '{"fingerprint": 1, "extras": null}'])
def test_a_stamp_of_the_wrong_shape_is_as_good_as_none(ready, stamp):
    ready.stamp.write_text(stamp)
    assert not environment.installed(ready, "course")


def not_executable(course):
    course.python.chmod(0o644)


def for_another_processor(course):
    course.python.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))


def fails(course):
    course.python.write_text("#!/bin/sh\nexit 1\n")


def a_file(course):
    shutil.rmtree(course.venv)
    course.venv.write_text("somewhere else")


def a_dangling_link(course):
    shutil.rmtree(course.venv)
    course.venv.symlink_to(course.root / "gone")


def cut_off(course):
    course.building.touch()


@pytest.mark.parametrize("harm", [not_executable, for_another_processor, fails, a_file, a_dangling_link, cut_off])
def test_a_broken_environment_is_made_again(ready, nothing_to_download, harm):
    harm(ready)
    assert not environment.installed(ready, "course")
    command.install(ready, "course")
    assert environment.installed(ready, "course") and environment.usable(ready)


def test_a_file_in_its_place_is_not_lost(ready, nothing_to_download, capsys):
    a_file(ready)
    command.install(ready, "course")
    assert (ready.root / ".venv-set-aside").read_text() == "somewhere else"
    assert "it is called .venv-set-aside now" in capsys.readouterr().out


def test_an_installation_that_was_cut_off_starts_from_a_clean_folder(course, monkeypatch, nothing_to_download):
    def stopped(course, *_):
        (course.venv / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(packages, "install", stopped)
    with pytest.raises(KeyboardInterrupt):
        command.install(course, "course")
    assert (course.venv / "half").exists() and not environment.usable(course)
    monkeypatch.setattr(packages, "install", lambda *_: None)
    command.install(course, "course")
    assert environment.installed(course, "course") and not (course.venv / "half").exists()


def test_a_second_one_waits_for_the_first_and_then_has_nothing_to_do(ready, monkeypatch, nothing_to_download, capsys):
    stamp = json.loads(ready.stamp.read_text())
    ready.stamp.unlink()
    monkeypatch.setattr(packages, "install", lambda *_: pytest.fail("installed twice"))
    with environment.held(ready):
        second = threading.Thread(target=command.install, args=(ready, "course"))
        second.start()
        while "waiting for it to finish" not in capsys.readouterr().out:
            assert second.is_alive()
        ready.stamp.write_text(json.dumps(stamp))
    second.join(20)
    assert not second.is_alive()
