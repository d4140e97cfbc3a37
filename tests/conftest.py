"""What every test stands on: the repository's folder, a home of its own, no network, no test that hangs."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Several tests share the processors: threads of torch that wait for work must not spin. Read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
LIMIT = 120  # seconds for one test that names no limit of its own


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "run the notebooks with so many seeds of results moved in the last place (ten after new numbers)"
    parser.addoption("--shaken", type=int, default=1, metavar="SEEDS", help=about)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Settings of plugins that only the tests need; a learner who runs nbval has no such plugin."""
    config.option.disable_socket = True
    config.option.allow_hosts = "127.0.0.1,localhost,::1"  # kernels and the browser talk over the loopback
    config.option.allow_unix_socket = True
    if config.option.timeout is None:
        config.option.timeout = LIMIT


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
        "NANLAB_HOME": home / "nanlab",
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
