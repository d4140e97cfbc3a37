"""Types and style, by the tools that pyproject.toml configures."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("command", [["mypy"], ["ruff", "check", ".", "--no-cache"]], ids=lambda command: command[0])
def test_finds_nothing(command, root, tmp_path):
    name, *arguments = command
    cache = [f"--cache-dir={tmp_path}"] if name == "mypy" else []
    tool = str(Path(sys.executable).parent / name)
    found = subprocess.run([tool, *arguments, *cache], cwd=root, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-8000:] + found.stderr
