"""A copy of start.py in a folder of its own, as a module and as a program."""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """What start.py reads of the repository, in a folder with a space in its name."""
    folder = tmp_path / "the course"
    (folder / "notebooks").mkdir(parents=True)
    for name in ("start.py", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (folder / "notebooks/00_start_here.ipynb").write_text(
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    return folder


@pytest.fixture
def start(course: Path) -> ModuleType:
    """start.py of `course`, imported; nothing is installed there yet."""
    spec = importlib.util.spec_from_file_location("start_of_course", course / "start.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ready(start: ModuleType) -> ModuleType:
    """The same with a .venv that says it holds everything; its Python is the one that runs the tests."""
    start.PYTHON.parent.mkdir(parents=True)
    start.PYTHON.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    start.PYTHON.chmod(0o755)
    start.STAMP.write_text(f'{{"fingerprint": "{start.fingerprint()}", "extras": ["course"]}}')
    return start
