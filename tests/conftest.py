"""What every test stands on: the repository's folder and a home of its own."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's folder."""
    return ROOT


@pytest.fixture(autouse=True, scope="session")
def _own_home(tmp_path_factory) -> None:
    """Progress, settings and histories of a test run stay out of the home of who runs it."""
    home = tmp_path_factory.mktemp("home")
    places = {
        "HOME": home,
        "XDG_DATA_HOME": home / "data",
        "XDG_CONFIG_HOME": home / "config",
        "XDG_STATE_HOME": home / "state",
        "XDG_CACHE_HOME": home / "cache",
        "IPYTHONDIR": home / "ipython",
        "JUPYTER_CONFIG_DIR": home / "jupyter",
    }
    before = dict(os.environ)
    os.environ.update({name: str(place) for name, place in places.items()})
    yield
    os.environ.clear()
    os.environ.update(before)
