#!/usr/bin/env python3
"""Set up the course and open it.

    python3 start.py                 set up what is missing, then open JupyterLab
    python3 start.py --no-browser    the same without a browser window; the address is printed
    python3 start.py --port 9000     on a port of your choice
    python3 start.py --check         say what would be done, and do nothing
    python3 start.py test            set up what the tests need and run them; arguments for pytest may follow

Everything goes into the folder .venv beside this file; delete it to start over. Needs Python 3.11 or newer, no more.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from functools import partial
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "nanlab-installed.json"  # what was installed, written last
BUILDING = VENV / "nanlab-building"  # there while an installation has not come to its end
LOG = VENV / "nanlab-install.log"
FIRST_PAGE = "notebooks/00_start_here.ipynb"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # PyTorch's own; the default index has CUDA builds for Linux
ALL_TESTS = ["-n", "2", "--dist", "loadgroup"]  # tests that share a warm process or a browser stay in one worker
DISK = {"cpu": 3, "cuda": 10}  # GB needed while installing: what is unpacked, and the downloads
say = partial(print, flush=True)


class Stop(Exception):
    """Something that the user can put right; the message says what and how."""


def main() -> int:
    options, rest = arguments()
    try:
        check_python()
        extra = "test" if options.command == "test" else "course"
        if options.check:
            return tell(extra, options.port)
        install(extra)
        if extra == "test":
            return run_tests(rest)
        return serve(options.port, browser=not options.no_browser)
    except Stop as stop:
        print(f"\n{stop}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to go on.", file=sys.stderr)
        return 130


def arguments() -> tuple[argparse.Namespace, list[str]]:
    usage = "%(prog)s [--no-browser] [--port N] [--check] [test [PYTEST ARGUMENTS]]"
    parser = argparse.ArgumentParser(usage=usage, allow_abbrev=False)
    parser.add_argument("command", nargs="?", choices=["test"], help="run the tests instead of opening the course")
    parser.add_argument("--no-browser", action="store_true", help="open no browser window; print the address")
    parser.add_argument("--port", type=int, help="the port of JupyterLab (default: 8888, or the next free one)")
    parser.add_argument("--check", action="store_true", help="say what would be done, and do nothing")
    options, rest = parser.parse_known_args()
    if rest and options.command != "test":
        parser.error(f"unknown: {' '.join(rest)}")
    return options, rest


def check_python() -> None:
    if sys.version_info >= OLDEST:
        return
    newer = next((name for minor in range(19, 10, -1) if shutil.which(name := f"python3.{minor}")), None)
    remedy = f"Run: {newer} start.py" if newer else "Install a newer one from your system or from python.org."
    raise Stop(f"This is Python {platform.python_version()}; the course needs 3.11 or newer. {remedy}")


def fingerprint() -> str:
    """Changes when what must be installed changes, and when the folder has moved, which breaks a .venv."""
    parts = [(ROOT / name).read_text(encoding="utf-8") for name in ("constraints.txt", "pyproject.toml")]
    return hashlib.sha256("\0".join([*parts, str(VENV), str(sys.version_info[:2])]).encode()).hexdigest()


def installed(extra: str) -> bool:
    """True when .venv holds everything for `extra` (tests need all that the course needs)."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return stamp.get("fingerprint") == fingerprint() and extra in stamp.get("extras", ()) and PYTHON.exists()


def usable() -> bool:
    """True when there is a .venv of this Python and this place in which pip runs and no installation was cut off."""
    config = VENV / "pyvenv.cfg"
    if BUILDING.exists() or not PYTHON.exists() or not config.exists():
        return False
    ask = "import sys, pip; print(sys.version_info[:2], sys.prefix)"
    answer = subprocess.run([str(PYTHON), "-c", ask], capture_output=True, text=True)
    return answer.stdout.strip() == f"{sys.version_info[:2]} {VENV}"


def has_nvidia() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def torch_source(python: str) -> tuple[list[str], str, str]:
    """What to ask pip for, in words where it comes from, and whether that is a CPU or a CUDA build.

    Only on Linux is there a choice to make: elsewhere the default index has CPU builds.
    """
    version = torch_version()
    if sys.platform != "linux":
        return [f"torch=={version}"], "the default index", "cpu"
    if has_nvidia():
        return [f"torch=={version}"], "the default index, with CUDA for the NVIDIA GPU of this machine", "cuda"
    wanted = f"torch=={version}+cpu"
    local = [python, "-m", "pip", "install", "--dry-run", "--no-deps", "--no-index", "-q", wanted]
    if subprocess.run(local, capture_output=True).returncode == 0:
        return [wanted], "a CPU build on this machine", "cpu"
    if answers(CPU_INDEX):
        return [wanted, "--extra-index-url", CPU_INDEX], "PyTorch's index of CPU builds", "cpu"
    words = """the default index, since PyTorch's index of CPU builds can't be reached.
     On Linux that is the build for NVIDIA GPUs: about 3 GB to download and 5.5 GB on disk; it runs without a GPU too"""
    return [f"torch=={version}"], words, "cuda"


def torch_version() -> str:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line.split("==")[1].split()[0] for line in lines if line.startswith("torch=="))


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/torch/", timeout=10) as answer:
            return answer.status == 200
    except (OSError, ValueError):
        return False


def tell(extra: str, port: int | None) -> int:
    """Print what a run would do."""
    print(f"Python {platform.python_version()}: new enough")
    print(f"Free on this disk: {shutil.disk_usage(ROOT).free / 1e9:.1f} GB")
    if installed(extra):
        print(f"{VENV.name} holds everything: nothing would be installed")
    else:
        print(f"{VENV.name} would be {'completed' if usable() else 'made'}")
        print(f"torch {torch_version()} would come from {torch_source(sys.executable)[1]}")
    print("The tests would run" if extra == "test" else f"JupyterLab would open {FIRST_PAGE} on port {free_port(port)}")
    return 0


def install(extra: str) -> None:
    """Make .venv hold everything for `extra`. Does nothing when it does already."""
    if installed(extra):
        return
    began = time.monotonic()
    if not usable():
        say(f"1/3  Making {VENV.name} with Python {platform.python_version()}")
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True)
        if made.returncode:
            raise Stop(explain(made.stdout + made.stderr, "cpu"))
    BUILDING.touch()
    torch, where, build = torch_source(str(PYTHON))
    say(f"2/3  Installing torch {torch_version()} from {where},\n     and JupyterLab; the first time takes minutes")
    check_disk(build)
    pip(["install", "--compile", "-c", "constraints.txt", *torch, "-e", f".[{extra}]"], build)
    say("3/3  Compiling, so that notebooks start quickly")
    subprocess.run([str(PYTHON), "-m", "compileall", "-q", "nanlab"], cwd=ROOT, check=False)
    no_news()
    stamp = {"fingerprint": fingerprint(), "extras": sorted({"course", extra})}
    STAMP.write_text(json.dumps(stamp) + "\n", encoding="utf-8")
    BUILDING.unlink()
    say(f"Installed in {time.monotonic() - began:.0f} s.")


def check_disk(build: str) -> None:
    free, needed = shutil.disk_usage(ROOT).free / 1e9, DISK[build]
    if free < needed:
        raise Stop(f"{free:.1f} GB are free on this disk and about {needed} GB are needed. Free some and run again.")


def pip(arguments: list[str], build: str) -> None:
    """Run pip, showing one line of what it is at; all that it says goes to a log."""
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--retries", "2", *arguments]
    env = {name: value for name, value in os.environ.items() if name not in ("PIP_NO_COMPILE", "PYTHONPATH")}
    began, said = time.monotonic(), []
    with LOG.open("w", encoding="utf-8") as log, subprocess.Popen(
        command, cwd=ROOT, env={**env, "PYTHONUNBUFFERED": "1"}, text=True, encoding="utf-8", errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            for line in process.stdout:
                log.write(line)
                said.append(line)
                show(line.strip(), time.monotonic() - began)
        except BaseException:
            process.terminate()
            raise
    show("", 0)
    if process.returncode:
        raise Stop(explain("".join(said), build))


def show(line: str, seconds: float) -> None:
    """One line that is written over in a terminal; elsewhere, a line for each large step."""
    if sys.stdout.isatty():
        text = f"     {seconds:4.0f} s  {line}" if line else ""
        print(f"\r{text[: shutil.get_terminal_size().columns - 1]}\033[K", end="", flush=True)
    elif line.startswith("Installing collected") or ("MB)" in line and line.startswith(("Downloading", "Processing"))):
        print(f"     {seconds:4.0f} s  {line[:100]}", flush=True)


def explain(said: str, build: str) -> str:
    """What pip or venv said, in words that help."""
    causes = {
        (
            "ensurepip",
        ): "This Python can't make virtual environments. On Debian or Ubuntu: sudo apt install python3-venv",
        ("No space left", "Errno 28"): f"The disk is full. About {DISK[build]} GB are needed; free some and run again.",
        ("Permission denied",): "This folder can't be written to. Put the course where you may write.",
        ("ConnectionError", "ConnectTimeout", "ReadTimeout", "ProxyError", "getaddrinfo", "No matching distribution"): (
            "The packages could not be downloaded. Check the network and any proxy, then run the same command again."
        ),
    }
    for signs, remedy in causes.items():
        for line in said.splitlines():
            if any(sign in line for sign in signs):
                return f"{line.strip()[:200]}\n\n{remedy}"
    last = "\n".join(said.strip().splitlines()[-8:])
    return f"{last}\n\npip did not finish; all that it said is in {LOG}. Run the same command again to start over."


def no_news() -> None:
    """Keep JupyterLab from asking, on its first page, whether it may fetch news."""
    page = VENV / "etc/jupyter/labconfig/page_config.json"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(json.dumps({"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}) + "\n")


def serve(port: int | None, browser: bool) -> int:
    """Run JupyterLab until Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended by another program: as by Ctrl-C
    port, token, began = free_port(port), secrets.token_urlsafe(24), time.monotonic()
    command = [
        *(str(PYTHON), "-m", "jupyterlab", "-y", "--log-level=WARN", "--ip=127.0.0.1", f"--port={port}"),
        *("--ServerApp.port_retries=0", f"--ServerApp.root_dir={ROOT}", f"--LabApp.default_url=/lab/tree/{FIRST_PAGE}"),
        *([] if browser else ["--no-browser"]),
        *(["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
    ]
    say("Starting JupyterLab")
    path = f"{PYTHON.parent}{os.pathsep}{os.environ.get('PATH', '')}"  # so that pytest and nanlab work in its terminals
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PATH": path, "JUPYTER_TOKEN": token})
    try:
        while process.poll() is None and not listening(port):
            time.sleep(0.1)
        if process.poll() is None:
            say(f"JupyterLab is up after {time.monotonic() - began:.1f} s. Open this address if no window opens:")
            say(f"  http://127.0.0.1:{port}/lab/tree/{FIRST_PAGE}?token={token}\nStop it with Ctrl-C.")
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait(timeout=20)
        say("\nJupyterLab has stopped.")
        return 0


def free_port(wanted: int | None) -> int:
    for port in [wanted] if wanted is not None else range(8888, 8908):
        if not listening(port):
            return port
    if wanted is None:
        raise Stop("Ports 8888 to 8907 are all in use. Name a free one: python3 start.py --port N")
    raise Stop(f"Port {wanted} is in use, perhaps by another JupyterLab. Name another: --port {wanted + 1}")


def listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run_tests(pytest_arguments: list[str]) -> int:
    return subprocess.run([str(PYTHON), "-m", "pytest", *(pytest_arguments or ALL_TESTS)], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
