"""Importing nanlab brings in nothing that its caller did not ask for, prints nothing and changes nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "numpy", "matplotlib", "ipywidgets", "IPython", "click", "rich", "jinja2", "nbformat")
NOTEBOOK_ONLY = ("matplotlib", "ipywidgets", "IPython", "nbformat")  # extras: absent from a plain installation


def loaded_by(code: str) -> set[str]:
    """The heavy packages in memory after `code` in a fresh process, which must print nothing itself."""
    ask = f"{code}\nimport sys; print(*sorted({{m.partition('.')[0] for m in sys.modules}} & set({HEAVY!r})))"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", ask], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert ran.stderr == "" and ran.stdout.count("\n") == 1
    return set(ran.stdout.split())


def test_import_nanlab_loads_none_of_the_heavy_packages():
    assert loaded_by("import nanlab") == set()


@pytest.mark.parametrize(
    "name", ["guard", "hunt", "audit", "watch", "suspects", "formats", "lessons", "Scene", "Report"]
)
def test_the_tool_needs_none_of_the_extras(name):
    """torch comes with it; matplotlib, ipywidgets and IPython load when something is drawn."""
    assert not loaded_by(f"import nanlab; nanlab.{name}") & set(NOTEBOOK_ONLY)


def test_reading_a_log_needs_no_torch():
    assert "torch" not in loaded_by("from nanlab import diagnose")


def test_lessons_and_plots_can_be_named_without_loading_matplotlib():
    code = "import nanlab.plots; from nanlab.lessons import softmax; softmax.SoftmaxLab()"
    assert "matplotlib" not in loaded_by(code)


def test_import_changes_no_global_state_of_torch():
    code = (
        "import torch; a = (torch.initial_seed(), torch.get_default_dtype(), torch.is_anomaly_enabled(), "
        "torch.get_num_threads(), torch.get_rng_state().sum())\n"
        "import nanlab; [getattr(nanlab, name) for name in nanlab.__all__]\n"
        "assert a == (torch.initial_seed(), torch.get_default_dtype(), torch.is_anomaly_enabled(), "
        "torch.get_num_threads(), torch.get_rng_state().sum())"
    )
    loaded_by(code)
