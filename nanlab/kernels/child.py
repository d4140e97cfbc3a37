"""What a fork of the warm process does to be like a kernel that was started afresh."""

import atexit
import ctypes
import os
import signal
import socket
import sys
import tempfile
import threading

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def run(request: dict, streams: list[int], connection: socket.socket) -> int:
    """Run a kernel to its end and return its exit status.

    `request` holds the kernel's arguments (``argv``), environment (``env``) and folder (``cwd``); `streams` are its
    standard output and error. Tells the process id through `connection` once signals to its group are safe.
    """
    os.setsid()  # a group of its own: an interrupt reaches what a cell started, and nobody else
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # even when the warm process is killed outright
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _streams(streams)
    connection.sendall(f"{os.getpid()}\n".encode())
    connection.close()
    _surroundings(request)
    _reseed()
    return _kernel(request["argv"])


def _streams(streams: list[int]) -> None:
    nowhere = os.open(os.devnull, os.O_RDONLY)
    for number, stream in enumerate((nowhere, *streams)):
        os.dup2(stream, number)
        os.close(stream)


def _surroundings(request: dict) -> None:
    parent = os.environ["JPY_PARENT_PID"]  # the warm process; the request names the one that asked
    backend = request["env"].get("MPLBACKEND")
    os.environ.clear()
    os.environ.update(request["env"], JPY_PARENT_PID=parent)
    if request["cwd"]:
        os.chdir(request["cwd"])
    tempfile.tempdir = None  # found anew: the environment may name another
    if backend:
        import matplotlib

        matplotlib.rcParams["backend"] = backend
    import ipykernel_launcher

    sys.argv = [ipykernel_launcher.__file__, *request["argv"]]


def _reseed() -> None:
    """Give this kernel random numbers of its own, so that what forgot its seed does not come out the same every time.

    Python's `random` does so itself after a fork. The order of sets of strings can't be changed after a start: kernels
    of one warm process share it, those of two don't.
    """
    import numpy
    import torch

    torch.seed()
    numpy.random.seed()


def _kernel(argv: list[str]) -> int:
    from ipykernel.kernelapp import IPKernelApp

    status = 0
    try:
        app = IPKernelApp.instance()
        app.initialize(argv)
        app.start()
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    threading._shutdown()  # type: ignore[attr-defined]  # what Python itself does before the exit functions
    atexit._run_exitfuncs()
    sys.stdout.flush()
    return status
