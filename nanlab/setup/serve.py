"""Runs JupyterLab on a port of its own until Ctrl-C, and leaves nothing behind when it is ended in any other way."""

import contextlib
import ctypes
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from nanlab.setup.course import FIRST_PAGE, Course, Stop, say

USUAL = range(8888, 8908)
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux's prctl


def serve(course: Course, port: int | None, browser: bool) -> int:
    """Run JupyterLab until Ctrl-C; returns its exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended by another program: as by Ctrl-C
    port, token, began = free_port(port), secrets.token_urlsafe(24), time.monotonic()
    command = [
        *(str(course.python), "-m", "jupyterlab", "-y", "--log-level=WARN", "--ip=127.0.0.1", f"--port={port}"),
        *("--ServerApp.port_retries=0", f"--ServerApp.root_dir={course.root}"),
        f"--LabApp.default_url=/lab/tree/{FIRST_PAGE}",
        *([] if browser else ["--no-browser"]),
        *(["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
    ]
    say("Starting JupyterLab")
    path = f"{course.python.parent}{os.pathsep}{os.environ.get('PATH', '')}"  # pytest and nanlab work in its terminals
    env = {**os.environ, "PATH": path, "JUPYTER_TOKEN": token}
    process = subprocess.Popen(command, cwd=course.root, env=env, preexec_fn=_die_with_us())
    try:
        while process.poll() is None and not ours(port, token):
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


def _die_with_us():
    """On Linux, what makes a child end when this process is killed; elsewhere nothing does."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(DIE_WITH_PARENT, signal.SIGTERM)


def ours(port: int, token: str) -> bool:
    """Whether the server that answers on `port` is the one that knows `token`: another one may have been quicker."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/api/me", headers={"Authorization": f"token {token}"})
    with contextlib.suppress(OSError, ValueError), _direct.open(asked, timeout=5) as answer:
        return isinstance(json.load(answer), dict)
    return False


_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy knows nothing of this machine's ports


def free_port(wanted: int | None) -> int:
    """`wanted` if it is free; the next free one of the usual ports for None, any free one for 0."""
    if wanted == 0:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]
    if wanted is not None and not 0 < wanted < 65536:
        raise Stop(f"{wanted} is no port. Name one from 1024 to 65535, or 0 for any that is free.")
    for port in [wanted] if wanted is not None else USUAL:
        if not listening(port):
            return port
    if wanted is None:
        raise Stop(f"Ports {USUAL[0]} to {USUAL[-1]} are all in use. Name a free one: python3 start.py --port N")
    raise Stop(f"Port {wanted} is in use, perhaps by another JupyterLab. Name another: --port {wanted + 1}")


def listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
