"""Which torch is taken, by which installer, and what is said when it fails."""

import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from nanlab.setup import packages
from nanlab.setup.course import Stop
from nanlab.setup.packages import CPU_INDEX, Torch


@pytest.fixture
def linux(monkeypatch) -> SimpleNamespace:
    """A Linux machine whose GPU, local packages and network a test decides."""
    machine = SimpleNamespace(gpu=False, local=False, index=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(packages, "has_nvidia", lambda: machine.gpu)
    monkeypatch.setattr(packages, "answers", lambda _address: machine.index)
    done = lambda command, **_: subprocess.CompletedProcess(command, 0 if machine.local else 1)  # noqa: E731
    monkeypatch.setattr(packages.subprocess, "run", done)
    return machine


def test_without_a_gpu_linux_takes_a_cpu_build_that_pip_has_at_hand(linux):
    linux.local = linux.index = True
    assert packages.torch_source("python", "2.13.0") == Torch("torch==2.13.0+cpu", "a CPU build on this machine", "cpu")


def test_without_one_at_hand_it_takes_pytorchs_cpu_index(linux):
    linux.index = True
    torch = packages.torch_source("python", "2.13.0")
    assert (torch.requirement, torch.index, torch.build) == ("torch==2.13.0+cpu", CPU_INDEX, "cpu")


def test_where_that_index_does_not_answer_it_takes_the_default_index_and_says_what_that_costs(linux):
    torch = packages.torch_source("python", "2.13.0")
    assert (torch.requirement, torch.build) == ("torch==2.13.0", "cuda")
    assert "can't be reached" in torch.where and "3 GB" in torch.where and "without a GPU" in torch.where


def test_with_an_nvidia_gpu_it_takes_the_default_index(linux):
    linux.gpu = linux.local = True
    assert packages.torch_source("python", "2.13.0").requirement == "torch==2.13.0"


def test_elsewhere_the_default_index_has_cpu_builds(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert packages.torch_source("python", "2.13.0") == Torch("torch==2.13.0", "the default index", "cpu")


def test_an_index_that_is_down_is_no_error():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert not packages.answers(f"http://127.0.0.1:{port}")


def test_a_disk_that_is_too_full_is_told_before_anything_is_downloaded(course, monkeypatch):
    monkeypatch.setattr(packages.shutil, "disk_usage", lambda _path: SimpleNamespace(free=1.2e9))
    with pytest.raises(Stop, match=r"1\.2 GB are free on this disk and about 3 GB are needed"):
        packages.check_disk(course, "cpu")


@pytest.fixture
def commands(monkeypatch) -> SimpleNamespace:
    """The commands of an installation, none of them run; a test says which fail by a word in them."""
    ran: list[list[str]] = []
    failing: set[str] = set()

    def run(_course, command):
        ran.append([*command])
        return "no" if failing & {*command} else None

    monkeypatch.setattr(packages, "run", run)
    monkeypatch.setattr(packages.subprocess, "run", lambda command, **_: ran.append(command))
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    return SimpleNamespace(ran=ran, failing=failing)


TORCH = Torch("torch==2.13.0+cpu", "somewhere", "cpu", CPU_INDEX)


def test_uv_installs_what_is_pinned_from_where_pip_would_look_too(course, commands):
    packages.install(course, TORCH, "course")
    by_uv = commands.ran[1]
    assert Path(by_uv[0]).name == "uv" and by_uv[1:3] == ["pip", "install"]
    pairs = {"-c": "constraints.txt", "-e": ".[course]", "--find-links": "/wheels", "--extra-index-url": CPU_INDEX}
    for pair in map(list, pairs.items()):
        assert pair in [by_uv[n : n + 2] for n in range(len(by_uv))]
    assert "compileall" in commands.ran[2]


def test_without_uv_for_this_machine_pip_installs_the_same(course, commands):
    commands.failing.add("uv")
    packages.install(course, TORCH, "course")
    assert commands.ran[1][1:4] == ["-m", "pip", "--disable-pip-version-check"] and ".[course]" in commands.ran[1]


def test_where_uv_fails_pip_is_tried_and_its_words_are_explained(course, commands):
    commands.failing.add(".[course]")
    with pytest.raises(Stop, match="pip did not finish"):
        packages.install(course, TORCH, "course")
    assert [Path(command[0]).name for command in commands.ran[:3]] == ["python", "uv", "python"]


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("NewConnectionError: Failed to establish a ConnectionError: Network is unreachable", "Check the network"),
        ("ERROR: No matching distribution found for setuptools>=77", "Check the network"),
        ("PermissionError: [Errno 13] Permission denied: '.venv'", "can't be written to"),
        ("ERROR: something else", "all that it said is in"),
    ],
)
def test_what_pip_says_is_put_in_words_that_help(course, said, word):
    assert word in packages.explain(f"Collecting torch\n{said}\n", "cpu", course.log)


def test_the_remedy_comes_before_pips_own_words(course):
    said = "WARNING: Retrying, broken by NewConnectionError\nERROR: No matching distribution found for torch"
    explained = packages.explain(said, "cpu", course.log)
    assert explained.startswith("The packages could not be downloaded.") and "Retrying" not in explained
