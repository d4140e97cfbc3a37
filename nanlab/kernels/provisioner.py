"""What Jupyter calls to start a kernel from a warm process (entry point ``nanlab-warm``)."""

import asyncio
import atexit
import os
import subprocess
import sys
from pathlib import Path
from typing import cast

from jupyter_client.provisioning import LocalProvisioner

from nanlab.kernels.client import SHARED, ForkedKernel, WarmProcess, settings

_ORDINARY = {"env", "cwd", "stdout", "stderr", "stdin", "kernel_id", "extra_arguments", "independent"}
_processes: dict[tuple, WarmProcess] = {}  # settings -> the warm process that this process started


class WarmProvisioner(LocalProvisioner):
    """Starts kernels as `LocalProvisioner` does, but forks them instead of executing them, where that is possible."""

    async def launch_kernel(self, cmd: list[str], **kwargs):
        arguments = _kernel_arguments(cmd)
        if sys.platform != "linux" or arguments is None or set(kwargs) - _ORDINARY:
            self.log.info("An ordinary kernel: warm ones are for Linux and for this Python.")
            return await super().launch_kernel(cmd, **kwargs)
        try:
            forked = await asyncio.to_thread(_fork, arguments, kwargs)
        except OSError as error:
            self.log.warning("An ordinary kernel: the warm process did not answer (%s).", error)
            return await super().launch_kernel(cmd, **kwargs)
        self.process = cast(subprocess.Popen, forked)
        self.pid = self.pgid = forked.pid  # it leads its own group
        self.cwd = kwargs.get("cwd", Path.cwd())
        return self.connection_info


def _kernel_arguments(cmd: list[str]) -> list[str] | None:
    """What follows ``-m ipykernel_launcher`` in the command of a kernel of this interpreter, or None for any other."""
    if Path(cmd[0]).absolute() != Path(sys.executable).absolute() or "ipykernel_launcher" not in cmd:
        return None
    return cmd[cmd.index("ipykernel_launcher") + 1 :]


def _fork(arguments: list[str], kwargs: dict) -> ForkedKernel:
    env = kwargs.get("env") or dict(os.environ)
    opened: list[int] = []
    try:
        streams = [_file(kwargs.get(name), fd, opened) for name, fd in (("stdout", 1), ("stderr", 2))]
        return ForkedKernel(_path(env), arguments, env, kwargs.get("cwd"), streams)
    finally:
        for stream in opened:
            os.close(stream)


def _file(stream, standard: int, opened: list[int]) -> int:
    """The open file that `subprocess.Popen` would use for `stream`."""
    if stream is None:
        return standard
    if stream == subprocess.DEVNULL:
        opened.append(os.open(os.devnull, os.O_WRONLY))
        return opened[-1]
    if stream == subprocess.PIPE:
        raise OSError("it can't be read through a pipe")
    return stream if isinstance(stream, int) else stream.fileno()


def _path(env: dict[str, str]) -> str:
    """The socket of a warm process with the settings of `env`; starts one when there is none."""
    wanted = settings(env)
    if SHARED in os.environ and wanted == settings(os.environ):
        return os.environ[SHARED]
    key = tuple(wanted.items())
    if key in _processes and not _processes[key].alive():
        _processes.pop(key).close()
    if key not in _processes:
        _processes[key] = WarmProcess({name: value for name, value in env.items() if not name.startswith("JPY_")})
    return _processes[key].path


@atexit.register
def _close() -> None:
    for process in _processes.values():
        process.close()
    _processes.clear()
