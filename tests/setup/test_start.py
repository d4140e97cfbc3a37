"""start.py says what it does, does nothing twice, and leaves things so that the next run works."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for Python are shell scripts")


def stand_in(start: ModuleType, script: str) -> None:
    """Put a shell script in the place of .venv's Python."""
    start.PYTHON.parent.mkdir(parents=True, exist_ok=True)
    start.PYTHON.write_text(f"#!/bin/sh\n{script}\n")
    start.PYTHON.chmod(0o755)


def program(start: ModuleType, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(start.ROOT / "start.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


# ---- which Python, which torch ---------------------------------------------------------------------------------------


def test_an_old_python_is_told_which_is_needed_and_which_newer_one_is_there(start, monkeypatch):
    monkeypatch.setattr(start.sys, "version_info", (3, 10, 4))
    monkeypatch.setattr(start.shutil, "which", lambda name: name if name == "python3.12" else None)
    with pytest.raises(start.Stop, match=r"needs 3\.11 or newer\. Run: python3\.12 start\.py"):
        start.check_python()


def test_an_old_python_alone_is_told_where_to_get_a_newer_one(start, monkeypatch):
    monkeypatch.setattr(start.sys, "version_info", (3, 9, 0))
    monkeypatch.setattr(start.shutil, "which", lambda _name: None)
    with pytest.raises(start.Stop, match="Install a newer one"):
        start.check_python()


@pytest.fixture
def linux(start, monkeypatch) -> SimpleNamespace:
    """A Linux machine whose GPU, local packages and network a test decides."""
    machine = SimpleNamespace(gpu=False, local=False, index=False)
    monkeypatch.setattr(start.sys, "platform", "linux")
    monkeypatch.setattr(start, "has_nvidia", lambda: machine.gpu)
    monkeypatch.setattr(start, "answers", lambda _address: machine.index)
    monkeypatch.setattr(
        start.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0 if machine.local else 1)
    )
    return machine


def test_without_a_gpu_linux_takes_a_cpu_build_that_pip_has_at_hand(start, linux):
    linux.local = linux.index = True
    assert start.torch_source("python") == (["torch==2.13.0+cpu"], "a CPU build on this machine", "cpu")


def test_without_one_at_hand_it_takes_pytorchs_cpu_index(start, linux):
    linux.index = True
    wanted, _, build = start.torch_source("python")
    assert wanted == ["torch==2.13.0+cpu", "--extra-index-url", start.CPU_INDEX] and build == "cpu"


def test_where_that_index_does_not_answer_it_takes_the_default_index_and_says_what_that_costs(start, linux):
    wanted, words, build = start.torch_source("python")
    assert wanted == ["torch==2.13.0"] and build == "cuda"
    assert "can't be reached" in words and "3 GB" in words and "without a GPU" in words


def test_with_an_nvidia_gpu_it_takes_the_default_index(start, linux):
    linux.gpu = linux.local = True
    assert start.torch_source("python")[0] == ["torch==2.13.0"]


def test_elsewhere_the_default_index_has_cpu_builds(start, monkeypatch):
    monkeypatch.setattr(start.sys, "platform", "darwin")
    assert start.torch_source("python") == (["torch==2.13.0"], "the default index", "cpu")


def test_an_index_that_is_down_is_no_error(start):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert not start.answers(f"http://127.0.0.1:{port}")


# ---- nothing twice ---------------------------------------------------------------------------------------------------


def test_what_is_installed_is_not_installed_again(ready, monkeypatch):
    monkeypatch.setattr(ready.subprocess, "run", lambda *_, **__: pytest.fail("something was started"))
    ready.install("course")


def test_the_tests_need_more_than_the_course(ready):
    assert ready.installed("course") and not ready.installed("test")


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_a_change_of_what_is_needed_is_noticed(ready, course, name):
    (course / name).write_text((course / name).read_text() + "\n# changed\n")
    assert not ready.installed("course")


def test_a_folder_that_was_moved_is_set_up_again(ready, course, tmp_path):
    shutil.copytree(course, tmp_path / "moved", symlinks=True)
    ready.VENV = tmp_path / "moved" / ".venv"
    ready.STAMP = ready.VENV / ready.STAMP.name
    ready.PYTHON = ready.VENV / "bin/python"
    assert not ready.installed("course") and not ready.usable()


# ---- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("NewConnectionError: Failed to establish a new connection: Network is unreachable", "Check the network"),
        ("ERROR: No matching distribution found for setuptools>=77", "Check the network"),
        ("PermissionError: [Errno 13] Permission denied: '.venv'", "can't be written to"),
        ("The virtual environment was not created because ensurepip is not available", "python3-venv"),
        ("ERROR: something else", "all that it said is in"),
    ],
)
def test_what_pip_says_is_put_in_words_that_help(start, said, word):
    assert word in start.explain(f"Collecting torch\n{said}\n", "cpu")


def test_a_disk_that_is_too_full_is_told_before_anything_is_downloaded(start, monkeypatch):
    monkeypatch.setattr(start.shutil, "disk_usage", lambda _path: SimpleNamespace(free=1.2e9))
    with pytest.raises(start.Stop, match=r"1\.2 GB are free on this disk and about 3 GB are needed"):
        start.check_disk("cpu")


def test_a_half_made_environment_is_made_again(start, monkeypatch):
    """Cut off while pip ran: the next run starts from a clean .venv."""
    asked = []

    def cut_off(arguments, _build):
        asked.append(arguments)
        (start.VENV / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "pip", cut_off)
    monkeypatch.setattr(start, "torch_source", lambda _python: (["torch==2.13.0"], "nowhere", "cpu"))
    with pytest.raises(KeyboardInterrupt):
        start.install("course")
    assert (start.VENV / "half").exists() and not start.usable() and not start.installed("course")
    monkeypatch.setattr(start, "pip", lambda arguments, _build: asked.append(arguments))
    start.install("course")
    assert start.installed("course") and start.usable() and not (start.VENV / "half").exists()
    assert asked[1][-2:] == ["-e", ".[course]"] and asked[1][:4] == ["install", "--compile", "-c", "constraints.txt"]


def test_an_environment_without_a_working_python_is_not_used(start):
    start.VENV.mkdir()
    (start.VENV / "pyvenv.cfg").touch()
    stand_in(start, "exit 1")
    assert not start.usable()


def test_ctrl_c_during_an_installation_is_answered_and_pip_is_stopped(start, tmp_path):
    place = tmp_path / "pid"
    stand_in(
        start,
        f"""case "$2" in
        *sys.prefix*) echo "{sys.version_info[:2]} {start.VENV}";;
        pip) case "$*" in *--dry-run*) ;; *) echo $$ > "{place}"; echo Collecting torch; exec sleep 60;; esac;;
        esac""",
    )
    (start.VENV / "pyvenv.cfg").touch()
    process = program(start)
    while not place.exists() or not place.read_text():
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[0]
    assert process.returncode == 130 and "Run the same command again" in said
    assert not Path(f"/proc/{place.read_text().strip()}").exists()
    assert not start.usable()


def test_a_busy_port_that_was_asked_for_is_told(start):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(start.Stop, match=f"Port {port} is in use.*--port {port + 1}"):
            start.free_port(port)


def test_a_busy_default_port_is_stepped_over(start, monkeypatch):
    monkeypatch.setattr(start, "listening", lambda port: port < 8890)
    assert start.free_port(None) == 8890


def test_check_says_what_would_be_done_and_does_nothing(start, course, linux, monkeypatch, capsys):
    monkeypatch.setattr(start.sys, "argv", ["start.py", "--check"])
    before = sorted(course.rglob("*"))
    assert start.main() == 0
    said = capsys.readouterr().out
    assert ".venv would be made" in said and "can't be reached" in said and "00_start_here" in said
    assert sorted(course.rglob("*")) == before


def test_an_unknown_option_is_turned_down(start):
    process = program(start, "--prot")
    assert "unknown: --prot" in process.communicate(timeout=20)[0]
    assert process.returncode == 2


# ---- what it starts --------------------------------------------------------------------------------------------------


def test_a_second_start_serves_the_first_page_and_ends_with_ctrl_c(ready):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    process = program(ready, "--no-browser", "--port", str(port))
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Stop it with Ctrl-C" in line:
            break
    address = next(word for line in lines for word in line.split() if word.startswith("http://127.0.0.1"))
    assert "/lab/tree/notebooks/00_start_here.ipynb?token=" in address
    token = address.split("token=")[1]
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/contents/notebooks/00_start_here.ipynb?content=0",
        headers={"Authorization": f"token {token}"},
    )
    assert json.load(patiently(asked))["name"] == "00_start_here.ipynb"
    process.send_signal(signal.SIGINT)
    assert "JupyterLab has stopped." in process.communicate(timeout=30)[0]
    assert process.returncode == 0 and not ready.listening(port)


def patiently(request: urllib.request.Request):
    """The answer to `request`, once the server gives one."""
    for _ in range(100):
        try:
            return urllib.request.urlopen(request, timeout=5)
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    return urllib.request.urlopen(request, timeout=5)


def test_the_tests_are_run_by_pytest_with_the_arguments_given(ready, monkeypatch):
    ran = []
    monkeypatch.setattr(ready.subprocess, "run", lambda c, **_: ran.append(c) or subprocess.CompletedProcess(c, 5))
    assert ready.run_tests(["-k", "hunt"]) == 5
    assert ran == [[str(ready.PYTHON), "-m", "pytest", "-k", "hunt"]]
