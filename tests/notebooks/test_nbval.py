"""Every stored output comes out again, under each CPU setting and when results move by a unit in the last place."""

from pathlib import Path

import pytest

from nanlab.authoring import files

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = [path for path in files.find(ROOT, "notebooks", "solutions") if files.has_code(path)]
FOLDERS = sorted({path.parent for path in NOTEBOOKS})
SETTINGS = ("as-is", "plain-cpu", "avx2")

_complaints: dict[tuple[str, Path], dict[Path, list[str]]] = {}  # one run of nbval serves a folder under a setting


def _case(setting: str, path: Path):
    folder = path.parent.relative_to(ROOT).as_posix()
    group = pytest.mark.xdist_group(f"{setting} {folder}")  # one worker runs them all, in one run of nbval
    return pytest.param(setting, path, id=f"{setting}-{folder}/{path.stem}", marks=group)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "setting" in metafunc.fixturenames:
        shaken = [f"shaken-{seed}" for seed in range(metafunc.config.getoption("shaken"))]
        metafunc.parametrize(("setting", "path"), [_case(s, p) for s in (*SETTINGS, *shaken) for p in NOTEBOOKS])


@pytest.mark.timeout(900)
def test_a_notebook_gives_what_is_stored(setting: str, path: Path, nbval, request):
    """nbval's strict comparison: text, tables, drawings, error names and messages."""
    key = (setting, path.parent)
    if key not in _complaints:
        wanted = [item.callspec.params for item in request.session.items if "setting" in _params(item)]
        chosen = [p["path"] for p in wanted if (p["setting"], p["path"].parent) == key]
        _complaints[key] = nbval(setting)(*chosen)
    assert not _complaints[key][path], "\n".join(_complaints[key][path])


def _params(item: pytest.Item) -> dict:
    return item.callspec.params if hasattr(item, "callspec") else {}


def test_there_are_notebooks_to_run():
    assert NOTEBOOKS, "no notebook was found: the enumeration looks in the wrong place"
