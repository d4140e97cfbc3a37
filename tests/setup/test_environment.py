"""environment.yml asks for what pyproject.toml asks for, under conda-forge's names."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CONDA_NAMES = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}


def _bounds(requirements: list[str]) -> dict[str, str]:
    """Name and bounds of each requirement, such as ``{"torch": ">=2.8"}``."""
    return {m[1]: m[2] for m in (re.match(r"([A-Za-z0-9_-]+)(.*)", line) for line in requirements)}


@pytest.fixture
def environment() -> dict:
    return yaml.safe_load((ROOT / "environment.yml").read_text())


def test_it_has_every_requirement_with_the_same_bounds(environment):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = _bounds([*project["dependencies"], *project["optional-dependencies"]["course"]])
    there = _bounds([line for line in environment["dependencies"] if isinstance(line, str)])
    for name, bounds in wanted.items():
        assert there.get(CONDA_NAMES.get(name, name)) == bounds, name


def test_nanlab_itself_comes_from_the_folder(environment):
    assert environment["dependencies"][-1] == {"pip": ["-e ."]}


def test_every_line_says_why():
    lines = (ROOT / "environment.yml").read_text().splitlines()
    assert [line for line in lines if line.lstrip().startswith("- ") and "#" not in line and "pip:" not in line] == []


def test_the_pinned_set_holds_every_direct_requirement():
    """And torch is pinned to a plain version, which a CPU build of it satisfies too."""
    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")
    )
    names = {re.sub(r"[-_.]+", "-", name).lower() for name in pinned}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = set(_bounds([*project["dependencies"], *extras["course"], *extras["test"]])) - {"nanlab"}
    assert wanted <= names
    assert re.fullmatch(r"\d+\.\d+\.\d+", pinned["torch"])
