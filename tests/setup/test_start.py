"""start.py as a program: what it says, how it ends, and that nothing is left behind."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from nanlab.setup import command, packages, serve
from nanlab.setup.course import Stop
from nanlab.setup.packages import Torch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for Python are shell scripts")
OLD = [path for minor in (6, 8, 10) if (path := shutil.which(f"python3.{minor}"))]
OLD = [path for path in OLD if subprocess.run([path, "-c", ""], capture_output=True).returncode == 0]  # no empty shim


@pytest.fixture
def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def too_old(course, monkeypatch, version, path=""):
    names = {"__name__": "start"}
    exec(compile((course.root / "start.py").read_text(), "start.py", "exec"), names)
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setenv("PATH", path)
    return names["too_old"]()


def test_an_old_python_is_told_which_is_needed_and_which_newer_one_is_there(course, monkeypatch, tmp_path):
    (tmp_path / "python3.12").touch(0o755)
    said = too_old(course, monkeypatch, (3, 10, 4), str(tmp_path))
    assert said == "This is Python 3.10; the course needs 3.11 or newer. Run: python3.12 start.py"


def test_an_old_python_alone_is_told_where_to_get_a_newer_one(course, monkeypatch, tmp_path):
    assert "Install a newer one" in too_old(course, monkeypatch, (2, 7, 18), str(tmp_path))


def test_any_python_can_read_what_tells_it_so(course):
    """No syntax that is younger than Python 2.7 stands in start.py, not even where it is not run."""
    source = (course.root / "start.py").read_text()
    assert source.isascii() and 'f"' not in source and "->" not in source and ":=" not in source
    for python in OLD:
        done = subprocess.run([python, str(course.root / "start.py")], capture_output=True, text=True)
        assert done.returncode == 1 and "needs 3.11 or newer" in done.stderr and "Error" not in done.stderr


def test_ctrl_c_during_an_installation_is_answered_and_pip_is_stopped(course, stand_in, program, tmp_path):
    place = tmp_path / "pid"
    stand_in(f"""case "$*" in *--dry-run*) ;; *) echo $$ > "{place}"; echo Collecting torch; exec sleep 60;; esac""")
    process = program()
    while not place.exists() or not place.read_text():
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[0]
    assert process.returncode == 130 and "Run the same command again" in said
    assert not Path(f"/proc/{place.read_text().strip()}").exists()


def test_a_full_disk_is_told_in_words_wherever_it_shows(course, monkeypatch, capsys):
    full = OSError(errno.ENOSPC, "No space left on device", str(course.log))
    monkeypatch.setattr(command, "install", lambda *_: (_ for _ in ()).throw(full))
    monkeypatch.setattr(sys, "argv", ["start.py"])
    assert command.main(course) == 1
    assert "The disk is full" in capsys.readouterr().err


def test_a_busy_port_that_was_asked_for_is_told():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Stop, match=f"Port {port} is in use.*--port {port + 1}"):
            serve.free_port(port)


@pytest.mark.parametrize("port", [-1, 65536, 70000])
def test_what_is_no_port_is_told(port):
    with pytest.raises(Stop, match=f"{port} is no port"):
        serve.free_port(port)


def test_port_0_is_any_free_one():
    assert 0 < serve.free_port(0) < 65536


def test_a_busy_default_port_is_stepped_over(monkeypatch):
    monkeypatch.setattr(serve, "listening", lambda port: port < 8890)
    assert serve.free_port(None) == 8890


def test_check_says_what_would_be_done_and_does_nothing(course, monkeypatch, capsys):
    monkeypatch.setattr(packages, "torch_source", lambda *_: Torch("torch", "the moon", "cpu"))
    monkeypatch.setattr(sys, "argv", ["start.py", "--check"])
    before = sorted(course.root.rglob("*"))
    assert command.main(course) == 0
    said = capsys.readouterr().out
    assert ".venv would be made" in said and "from the moon" in said and "00_start_here" in said
    assert sorted(course.root.rglob("*")) == before


def test_an_unknown_option_is_turned_down(program):
    process = program("--prot")
    assert "unknown: --prot" in process.communicate(timeout=20)[0]
    assert process.returncode == 2


def address_of(process: subprocess.Popen) -> str:
    """The address that the program prints once JupyterLab is up."""
    said = []
    for line in process.stdout:
        said.append(line)
        if "token=" in line:
            return line.strip()
    raise AssertionError("".join(said))


def test_a_second_start_serves_the_first_page_and_ends_with_ctrl_c(ready, program, free):
    process = program("--no-browser", "--port", str(free))
    address = address_of(process)
    assert "/lab/tree/notebooks/00_start_here.ipynb?token=" in address
    asked = urllib.request.Request(
        f"http://127.0.0.1:{free}/api/contents/notebooks/00_start_here.ipynb?content=0",
        headers={"Authorization": f"token {address.split('token=')[1]}"},
    )
    assert json.load(patiently(asked))["name"] == "00_start_here.ipynb"
    process.send_signal(signal.SIGINT)
    assert "JupyterLab has stopped." in process.communicate(timeout=30)[0]
    assert process.returncode == 0 and not serve.listening(free)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not end a child with its parent")
def test_killed_it_leaves_no_server_behind(ready, program, free):
    process = program("--no-browser", "--port", str(free))
    address_of(process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    until = time.monotonic() + 30
    while serve.listening(free):
        assert time.monotonic() < until, "JupyterLab runs on without its parent"
        time.sleep(0.1)


def test_a_server_that_does_not_know_our_token_is_not_ours(ready, program, free):
    process = program("--no-browser", "--port", str(free))
    token = address_of(process).split("token=")[1]
    assert serve.ours(free, token) and not serve.ours(free, "another")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


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
    monkeypatch.setattr(command.subprocess, "run", lambda c, **_: ran.append(c) or subprocess.CompletedProcess(c, 5))
    assert command.run_tests(ready, ["-k", "hunt"]) == 5
    assert ran == [[str(ready.python), "-m", "pytest", "-k", "hunt"]]
