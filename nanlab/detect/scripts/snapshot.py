"""Stopped copies of the running process: the newest wakes when a step fails and runs it again under the hunt.

A fork shares its memory with its parent until one of them writes, so a snapshot of everything (Python, files, random
state, weights) costs the page tables: 7 to 12 ms. Linux, and training on the CPU, only.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import platform
import select
import signal
import stat
import struct
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nanlab.detect.scripts.children import own_fork

EVERY = 10  # steps between snapshots, and so the most steps that a replay runs again
MOST_OF_TIME = 0.05  # share of the plain run's time that snapshots may take; they become rarer above it
LONGEST = 600.0  # seconds that a replay may take before it is given up


def possible() -> str | None:
    """Why this process cannot be copied now, or None when it can."""
    if platform.system() != "Linux":
        return "snapshots need Linux"
    for kind in ("cuda", "xpu"):
        if getattr(torch, kind).is_initialized():
            return f"a process that uses {kind} cannot be copied"
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "a distributed job cannot be copied"
    import multiprocessing

    if multiprocessing.active_children():
        return "worker processes (DataLoader num_workers) are shared with a copy"
    if any(t is not threading.current_thread() and not t.daemon for t in threading.enumerate()):
        return "other threads do not survive in a copy"
    return None


@dataclass
class Child:
    """A stopped copy: its process, the pipe that wakes it, the pipe that it answers through, the step it stands
    before."""

    pid: int
    wake: int
    answer: int
    step: int


@dataclass
class Woken:
    """What a copy is told when it wakes, and how it answers. `last_step` is the step whose end it may not run past;
    `task` is what to do meanwhile, as plain data."""

    last_step: int
    task: dict
    answer: int

    def send(self, data: object) -> None:
        """Answers with plain data and ends the copy at once: nothing of the script runs on."""
        try:
            _write(self.answer, data)
        finally:
            os._exit(0)


class Snapshots:
    """Keeps one stopped copy of this process, which can be woken any number of times: a copy of the copy runs."""

    def __init__(self) -> None:
        self.child: Child | None = None
        self.taken = 0
        self.seconds = 0.0
        self.every = EVERY

    def due(self, step: int, plain_step: float) -> bool:
        """Whether a new copy is wanted before `step`. Copies get rarer when they cost more than a twentieth of the
        time."""
        if self.taken and plain_step:
            self.every = max(EVERY, int(self.seconds / self.taken / (MOST_OF_TIME * plain_step)))
        return self.child is None or step - self.child.step >= self.every

    def take(self, step: int) -> Woken | None:
        """Copies the process as it is before `step`. Returns None in the process that goes on, and what it was told in
        every copy that is woken."""
        began = time.perf_counter()
        sys.stdout.flush()
        sys.stderr.flush()
        wake_read, wake_write = os.pipe()
        answer_read, answer_write = os.pipe()
        gc.freeze()  # keeps the collector of the copy from touching every page
        pid = own_fork()
        if pid == 0:
            held = [self.child.wake, self.child.answer] if self.child is not None else []
            for fd in (wake_write, answer_read, *held):  # an older copy ends when the last holder of its pipe lets go
                os.close(fd)
            return _sleep(wake_read, answer_write)
        gc.unfreeze()
        os.close(wake_read)
        os.close(answer_write)
        self.drop()
        self.child = Child(pid, wake_write, answer_read, step)
        self.taken += 1
        self.seconds += time.perf_counter() - began
        return None

    def wake(self, last_step: int, task: dict) -> Any:
        """Wakes the copy, lets it run to the end of `last_step` at most, and returns its answer, or None when there is
        no copy, when it died, or when it took too long; it is then dropped."""
        if self.child is None:
            return None
        try:
            _write(self.child.wake, [last_step, task])
            return _read(self.child.answer, LONGEST)
        except (OSError, EOFError, TimeoutError):
            self.drop()
            return None

    def drop(self) -> None:
        """Ends the copy that is kept, if any: at once, and not when the last process that holds its pipe has ended."""
        child = self.child
        self.forget()
        if child is not None:
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)

    def forget(self) -> None:
        """Lets go of the copy that is kept without ending it."""
        child, self.child = self.child, None
        if child is not None:
            os.close(child.wake)
            os.close(child.answer)


def _sleep(wake: int, answer: int) -> Woken:
    """In the copy: waits to be woken, and then lets a copy of itself run on. Ends when the pipe closes."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            last_step, task = _read(wake, None)
            pid = own_fork()
            if pid == 0:
                os.close(wake)
                _silence(keep=answer)
                torch.set_num_threads(1)  # the pool's threads were not copied
                return Woken(last_step, task, answer)
            if os.waitpid(pid, 0)[1] != 0:
                _write(answer, None)
    except BaseException:  # the pipe closed; whatever it was, nothing of the script may run here
        os._exit(0)


def _write(fd: int, data: object) -> None:
    """One message: its length, then JSON."""
    body = json.dumps(data).encode()
    body = struct.pack("q", len(body)) + body
    while body:
        body = body[os.write(fd, body) :]


def _read(fd: int, seconds: float | None) -> Any:
    """The next message. Raises EOFError when the other end is closed and TimeoutError when it takes too long."""
    end = None if seconds is None else time.monotonic() + seconds
    return json.loads(_exactly(fd, struct.unpack("q", _exactly(fd, 8, end))[0], end))


def _exactly(fd: int, size: int, end: float | None) -> bytes:
    got = b""
    while len(got) < size:
        if end is not None and not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            raise TimeoutError
        part = os.read(fd, min(size - len(got), 65536))
        if not part:
            raise EOFError
        got += part
    return got


def _silence(keep: int) -> None:
    """Points everything that the copy could write to (streams, open files) at nothing, so that the replay prints and
    logs nothing a second time."""
    null = os.open(os.devnull, os.O_RDWR)
    for entry in list(Path("/proc/self/fd").iterdir()):
        fd = int(entry.name)
        if fd in (keep, null):
            continue
        with contextlib.suppress(OSError):
            if fd < 3 or (stat.S_ISREG(os.fstat(fd).st_mode) and _writable(fd)):
                os.dup2(null, fd)


def _writable(fd: int) -> bool:
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
