"""Run notebooks under nbval, in processes of their own, on warm kernels, with an outer limit."""

import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from nanlab.authoring import shaken
from nanlab.kernels.client import SHARED, WarmProcess
from nanlab.kernels.manager import write_kernelspec

ROOT = Path(__file__).resolve().parents[2]
CELL_LIMIT = 60  # seconds
NOTEBOOK_LIMIT = 120  # seconds, for the whole of it and nbval's own start

# The outputs must come out the same on other processors; these settings of libraries stand in for them, and so does a
# setting shaken-SEED, in which results move by one unit in the last place.
SETTINGS = {
    "as-is": {},
    "plain-cpu": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OMP_NUM_THREADS": "1",
    },
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "2"},
}


class Nbval:
    """Runs nbval under one CPU setting, all its kernels from one warm process and started with `arguments`."""

    def __init__(self, settings: dict[str, str], folder: Path, arguments: Sequence[str] = ()):
        self.env = {**os.environ, **settings, "JUPYTER_PATH": str(write_kernelspec(folder, arguments))}
        self.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # nbval alone, and quickly
        self.warm = WarmProcess(self.env) if sys.platform == "linux" else None
        if self.warm:
            self.env[SHARED] = self.warm.path

    def __call__(self, *notebooks: Path, lax: bool = False) -> dict[Path, list[str]]:
        """The complaints about each notebook (of one folder), from one run; none means that every cell passed."""
        report = Path(self.env["JUPYTER_PATH"]) / "report.xml"
        command = [
            *(sys.executable, "-m", "pytest", "-p", "nbval.plugin", "-p", "no:cacheprovider", "-c", os.devnull),
            *("--nbval-lax" if lax else "--nbval", f"--nbval-cell-timeout={CELL_LIMIT}", f"--junitxml={report}"),
            *("--rootdir", str(notebooks[0].parent), "-q", *map(str, notebooks)),
        ]
        report.unlink(missing_ok=True)
        limit = NOTEBOOK_LIMIT * len(notebooks)
        ran = subprocess.run(command, env=self.env, cwd=ROOT, capture_output=True, text=True, timeout=limit)
        if not report.is_file():
            return {path: [ran.stdout + ran.stderr] for path in notebooks}
        return read_report(report, notebooks)

    def close(self) -> None:
        if self.warm:
            self.warm.close()


def read_report(report: Path, notebooks: tuple[Path, ...]) -> dict[Path, list[str]]:
    """Sort the results of nbval's cells by notebook."""
    complaints: dict[Path, list[str]] = {path: [] for path in notebooks}
    seen = set()
    for case in xml.parse(report).iter("testcase"):
        path = next(path for path in notebooks if case.get("classname") == path.name)
        seen.add(path)
        for bad in case:
            if bad.tag in ("failure", "error", "skipped"):  # an xfail is what nbval says of cells after a hang
                complaints[path].append(f"{case.get('name')}: {bad.get('message')}\n{bad.text}")
    for path in complaints.keys() - seen:
        complaints[path].append("nbval ran none of its cells")
    return complaints


def _arguments(name: str) -> list[str]:
    """What the kernels of the setting `name` are started with."""
    kind, _, seed = name.partition("-")
    return shaken.arguments(int(seed)) if kind == "shaken" else []


@pytest.fixture(scope="session")
def nbval(tmp_path_factory) -> Iterator:
    """Gives an `Nbval` for the name of a CPU setting; its warm process lives as long as the session."""
    made: dict[str, Nbval] = {}

    def under(name: str) -> Nbval:
        if name == "avx2" and torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
            pytest.skip("this processor has no AVX2")
        if name not in made:
            made[name] = Nbval(SETTINGS.get(name, {}), tmp_path_factory.mktemp(name), _arguments(name))
        return made[name]

    yield under
    for runner in made.values():
        runner.close()
