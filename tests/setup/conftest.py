"""A copy of start.py and what it needs in a folder of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nanlab.setup.course import Course

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """What start.py reads of the repository, in a folder with a space in its name; nothing is installed there yet."""
    folder = tmp_path / "the course"
    (folder / "notebooks").mkdir(parents=True)
    for name in ("start.py", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "nanlab/setup", folder / "nanlab/setup", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "nanlab/__init__.py", folder / "nanlab")
    (folder / "notebooks/00_start_here.ipynb").write_text(
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    return Course(folder)


@pytest.fixture
def stand_in(course: Course):
    """Puts a shell script in the place of .venv's Python; it says which .venv it belongs to, unless told otherwise."""

    def put(script: str, *, place: Path | None = None) -> None:
        course.python.parent.mkdir(parents=True, exist_ok=True)
        says = f'case "$2" in *sys.prefix*) echo "{sys.version_info[:2]} {place or course.venv}"; exit;; esac'
        course.python.write_text(f"#!/bin/sh\n{says}\n{script}\n")
        course.python.chmod(0o755)
        (course.venv / "pyvenv.cfg").touch()

    return put


@pytest.fixture
def ready(course: Course, stand_in) -> Course:
    """The same with a .venv that says it holds everything; its Python is the one that runs the tests."""
    stand_in(f'exec "{sys.executable}" "$@"')
    course.stamp.write_text(f'{{"fingerprint": "{course.fingerprint()}", "extras": ["course"]}}')
    return course


@pytest.fixture
def program(course: Course):
    """Starts ``start.py`` with some arguments, by some Python."""

    def start(*arguments: str, python: str = sys.executable) -> subprocess.Popen:
        return subprocess.Popen(
            [python, str(course.root / "start.py"), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    return start
