"""Brings torch, JupyterLab and the rest into the .venv: by uv, which takes a tenth of pip's time, or else by pip."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nanlab.setup.course import Course, Stop, say

CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # PyTorch's own; the default index has CUDA builds for Linux
DISK = {"cpu": 3, "cuda": 10}  # GB needed while installing: what is unpacked, and the downloads
NETWORK = (
    "ConnectionError", "ConnectTimeout", "ReadTimeout", "ProxyError", "getaddrinfo", "No matching distribution",
    "error sending request", "dns error",
)  # fmt: skip
OFFLINE = """The packages could not be downloaded. Check the network and any proxy, then run the same command again."""


@dataclass(frozen=True)
class Torch:
    """What to ask the installer for, in words where it comes from, and whether that is a "cpu" or a "cuda" build."""

    requirement: str
    where: str
    build: str
    index: str = ""


def has_nvidia() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def torch_source(python: str, version: str) -> Torch:
    """Where torch will come from. There is a choice on Linux only: elsewhere the default index has CPU builds."""
    if sys.platform != "linux":
        return Torch(f"torch=={version}", "the default index", "cpu")
    if has_nvidia():
        words = "the default index, with CUDA for the NVIDIA GPU of this machine"
        return Torch(f"torch=={version}", words, "cuda")
    wanted = f"torch=={version}+cpu"
    local = [python, "-m", "pip", "install", "--dry-run", "--no-deps", "--no-index", "-q", wanted]
    if subprocess.run(local, capture_output=True).returncode == 0:
        return Torch(wanted, "a CPU build on this machine", "cpu")
    if answers(CPU_INDEX):
        return Torch(wanted, "PyTorch's index of CPU builds", "cpu", CPU_INDEX)
    words = """the default index, since PyTorch's index of CPU builds can't be reached.
     On Linux that is the build for NVIDIA GPUs: about 3 GB to download and 5.5 GB on disk; it runs without a GPU too"""
    return Torch(f"torch=={version}", words, "cuda")


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/torch/", timeout=10) as answer:
            return answer.status == 200
    except (OSError, ValueError):
        return False


def check_disk(course: Course, build: str) -> None:
    free, needed = shutil.disk_usage(course.root).free / 1e9, DISK[build]
    if free < needed:
        raise Stop(f"{free:.1f} GB are free on this disk and about {needed} GB are needed. Free some and run again.")


def install(course: Course, torch: Torch, extra: str) -> None:
    """Install everything for `extra` into .venv and compile it. Raises Stop with what went wrong, in words."""
    wanted = ["-c", "constraints.txt", torch.requirement, "-e", f".[{extra}]"]
    wanted += ["--extra-index-url", torch.index] if torch.index else []
    if not by_uv(course, wanted):
        failed = by_pip(course, ["install", "--compile", *wanted])
        if failed is not None:
            raise Stop(explain(failed, torch.build, course.log))
    compiled = [str(course.python), "-m", "compileall", "-q", "-j", "0", str(course.venv / "lib"), "nanlab"]
    subprocess.run(compiled, cwd=course.root, check=False, capture_output=True)


def by_uv(course: Course, wanted: Sequence[str]) -> bool:
    """True when uv has installed what is `wanted`. It may be missing for this machine, or not know what pip is
    configured to: then pip does the work."""
    if by_pip(course, ["install", "--quiet", "uv"]) is not None:
        return False
    links = [part for part in os.environ.get("PIP_FIND_LINKS", "").split() if part]
    more = [option for link in links for option in ("--find-links", link)]
    name = "uv.exe" if sys.platform == "win32" else "uv"
    command = [str(course.python.with_name(name)), "pip", "install", "--python", str(course.python)]
    # torch's index holds old releases of other packages too, and constraints.txt says which release is meant
    return run(course, [*command, "--index-strategy", "unsafe-best-match", *more, *wanted]) is None


def by_pip(course: Course, arguments: Sequence[str]) -> str | None:
    """None when pip has done what it was asked to, else what it said."""
    return run(course, [str(course.python), "-m", "pip", "--disable-pip-version-check", "--retries", "2", *arguments])


def run(course: Course, command: Sequence[str]) -> str | None:
    """Run an installer, showing one line of what it is at; all that it says goes to a log. None when it succeeded, else
    what it said."""
    env = {name: value for name, value in os.environ.items() if name not in ("PIP_NO_COMPILE", "PYTHONPATH")}
    began, said = time.monotonic(), []
    with course.log.open("a", encoding="utf-8") as log, subprocess.Popen(
        command, cwd=course.root, env={**env, "PYTHONUNBUFFERED": "1"}, text=True, encoding="utf-8", errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            for line in process.stdout or ():
                log.write(line)
                said.append(line)
                show(line.strip(), time.monotonic() - began)
        except BaseException:
            process.terminate()
            raise
    show("", 0)
    return "".join(said) if process.returncode else None


def show(line: str, seconds: float) -> None:
    """One line that is written over in a terminal; elsewhere, a line for each large step."""
    if sys.stdout.isatty():
        text = f"     {seconds:4.0f} s  {line}" if line else ""
        print(f"\r{text[: shutil.get_terminal_size().columns - 1]}\033[K", end="", flush=True)
    elif line.startswith(("Installing collected", "Resolved", "Prepared", "Installed")):
        say(f"     {seconds:4.0f} s  {line[:100]}")


def explain(said: str, build: str, log: Path) -> str:
    """What pip said, in words that help: the remedy first, then the line that it rests on."""
    causes = {
        ("No space left", "Errno 28"): f"The disk is full. About {DISK[build]} GB are needed; free some and run again.",
        ("Permission denied",): "This folder can't be written to. Put the course where you may write.",
        NETWORK: OFFLINE,
    }
    for signs, remedy in causes.items():
        for line in reversed(said.splitlines()):
            if any(sign in line for sign in signs):
                return f"{remedy}\n\npip's own words: {line.strip()[:200]}"
    last = "\n".join(said.strip().splitlines()[-8:])
    return f"{last}\n\npip did not finish; all that it said is in {log}. Run the same command again to start over."
