"""The warm process: it has imported what notebooks import, waits for requests and forks a kernel for each.

It imports and does nothing else, since a fork copies only the thread that forks: an operation that had started torch's
threads here would hang in the children, and CUDA can't be used after a fork once it has started.
"""

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import struct
import sys
from pathlib import Path

LENGTH = struct.Struct("!I")
INLINE = "module://matplotlib_inline.backend_inline"  # what a kernel draws with; pyplot reads it when imported


def main(listener_fd: int) -> None:
    """Serve on an open listening socket until standard input ends, as it does when the owner of this process ends."""
    _load()
    listener = socket.socket(fileno=listener_fd)
    kernels: dict[int, socket.socket] = {}  # process id -> the connection that asked for it
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler, so that the end of a kernel wakes the loop
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches the whole group
    signal.set_wakeup_fd(wake)
    selector = selectors.DefaultSelector()
    for source in (listener, sys.stdin.fileno(), woken):
        selector.register(source, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                _serve(listener, kernels, selector)
            elif key.fileobj == woken:
                os.read(woken, 4096)
                _reap(kernels, selector)
            elif key.fileobj == sys.stdin.fileno():
                _end(kernels, listener.getsockname())
            elif isinstance(key.fileobj, socket.socket) and not _still_wanted(key.fileobj):
                _kill(key.data)
                selector.unregister(key.fileobj)


def _load() -> None:
    if sys.path and sys.path[0] == "":
        del sys.path[0]  # the folder that the owner happened to stand in
    os.environ["MPLBACKEND"] = INLINE
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # ipykernel reads it when imported: a kernel watches this process
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asking whether there is a GPU must not start CUDA
    import ipykernel.ipkernel
    import ipykernel.kernelapp
    import ipywidgets
    import matplotlib.pyplot
    import torch

    torch.optim.SGD([torch.zeros(1)], lr=0.1)  # the first optimizer of a process imports torch._dynamo
    del ipykernel, ipywidgets, matplotlib
    gc.collect()
    gc.freeze()  # the collector would touch, and so copy, every page that kernels share


def _serve(listener: socket.socket, kernels: dict, selector: selectors.BaseSelector) -> None:
    """Fork one kernel, on request."""
    connection = listener.accept()[0]
    try:
        request, streams = receive(connection)
    except (OSError, ValueError):
        connection.close()
        return
    pid = os.fork()
    if pid:
        for stream in streams:
            os.close(stream)
        kernels[pid] = connection
        selector.register(connection, selectors.EVENT_READ, data=pid)
        return
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        selector.close()
        for other in (listener, *kernels.values()):
            other.close()
        from nanlab.kernels import child

        status = child.run(request, streams, connection)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def receive(connection: socket.socket) -> tuple[dict, list[int]]:
    """A request and the two open files that came with it. Raises ValueError when it is cut short."""
    head, streams, _, _ = socket.recv_fds(connection, LENGTH.size, 2)
    if len(head) < LENGTH.size or len(streams) < 2:
        raise ValueError("a request without its streams")
    body = bytearray()
    while len(body) < LENGTH.unpack(head)[0]:
        part = connection.recv(1 << 16)
        if not part:
            raise ValueError("a request cut short")
        body += part
    return json.loads(body), streams


def _reap(kernels: dict, selector: selectors.BaseSelector) -> None:
    """Tell whoever asked for a kernel that it has ended, and how."""
    while kernels:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        connection = kernels.pop(pid)
        if connection in selector.get_map():
            selector.unregister(connection)
        with contextlib.suppress(OSError):  # nobody may be listening any more
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        connection.close()


def _still_wanted(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(64))
    except OSError:
        return False


def _kill(pid: int) -> None:
    """End a kernel and what it started."""
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            end(pid, signal.SIGKILL)


def _end(kernels: dict, address: str) -> None:
    """End every kernel and this process, and leave no socket behind: the owner may be gone."""
    for pid in kernels:
        _kill(pid)
    with contextlib.suppress(OSError):
        Path(address).unlink()
        Path(address).parent.rmdir()
    os._exit(0)
