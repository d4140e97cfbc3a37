"""Start a warm process and ask it for kernels."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from nanlab.kernels.server import LENGTH

SHARED = "NANLAB_WARM_KERNELS"  # names the socket of a warm process that several processes use
# What libraries read while they are imported: kernels that differ in it need warm processes of their own.
_READ_AT_IMPORT = (
    "ATEN_",
    "CUDA_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "PYTHON",
    "PYTORCH_",
    "TORCH",
)


def settings(env: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that is read while libraries are imported."""
    return {name: value for name, value in sorted(env.items()) if name.startswith(_READ_AT_IMPORT)}


class WarmProcess:
    """A warm process that this one started, ready to be asked at `path`.

    It ends, with its kernels, on `close` or when this process ends in any way. Starting returns at once; the first
    kernel waits for the imports, about as long as an ordinary kernel with torch.
    """

    def __init__(self, env: Mapping[str, str]):
        self._folder = tempfile.TemporaryDirectory(prefix="nanlab-warm-")
        self.path = str(Path(self._folder.name) / "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path)
            listener.listen(16)
            start = f"from nanlab.kernels.server import main; main({listener.fileno()})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", start],
                stdin=subprocess.PIPE,  # its end is the signal to stop
                stdout=subprocess.DEVNULL,
                env={"OMP_WAIT_POLICY": "PASSIVE", **env},  # kernels share processors: a waiting thread must not spin
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End the warm process and its kernels."""
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


class ForkedKernel:
    """A kernel forked by a warm process, with as much of `subprocess.Popen` as Jupyter uses."""

    stdin = stdout = stderr = None

    def __init__(self, path: str, argv: list[str], env: Mapping[str, str], cwd: str | None, streams: list[int]):
        """Ask the warm process at `path`; raises OSError when it can't be asked."""
        self.returncode: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._rest = b""
        try:
            self._connection.connect(path)
            body = json.dumps({"argv": argv, "env": dict(env), "cwd": cwd and str(cwd)}).encode()
            socket.send_fds(self._connection, [LENGTH.pack(len(body))], streams)
            self._connection.sendall(body)
            self.pid = self._number(None) or 0  # without a limit it waits for a number
        except OSError:
            self._connection.close()
            raise

    def poll(self) -> int | None:
        """The exit status, or None while the kernel runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status; raises TimeoutExpired after `timeout` seconds."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("kernel", timeout or 0.0)
        return status

    def send_signal(self, signum: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, signum)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            try:
                self.returncode = self._number(timeout)
            except OSError:
                self.returncode = -signal.SIGKILL  # the warm process is gone, and the kernel with it
            if self.returncode is not None:
                self._connection.close()
        return self.returncode

    def _number(self, timeout: float | None) -> int | None:
        """The next line that the warm process sent, or None when none came in time. Raises OSError at its end."""
        while b"\n" not in self._rest:
            if not select.select([self._connection], [], [], timeout)[0]:
                return None
            part = self._connection.recv(64)
            if not part:
                raise ConnectionResetError("the warm process ended")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return int(line)
