"""Stopped copies of the running process, one kept at a time: it wakes when the step fails and runs it again under the hunt.

A fork shares its memory with its parent until one of them writes, so a snapshot of everything (Python, files, random
state, weights) costs the page tables: 7 to 12 ms. Linux, and training on the CPU, only.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import platform
import signal
import stat
import struct
import sys
import threading
import time
from dataclasses import dataclass

import torch

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
    """A stopped copy: its process, the pipe that wakes it, the pipe that it answers through, the step it stands before."""

    pid: int
    wake: int
    answer: int
    step: int


class Woken:
    """What a copy is told when it wakes: the step whose end it may not run past; and how it answers."""

    def __init__(self, last_step: int, answer: int) -> None:
        self.last_step = last_step
        self._answer = answer

    def send(self, found: dict | None) -> None:
        """Answers with a report as plain data, or None, and ends the copy at once: nothing of the script runs on."""
        try:
            with os.fdopen(self._answer, "wb") as pipe:
                pipe.write(json.dumps(found).encode())
        finally:
            os._exit(0)


class Snapshots:
    """Keeps one stopped copy of this process."""

    def __init__(self) -> None:
        self.child: Child | None = None
        self.taken = 0
        self.seconds = 0.0
        self.every = EVERY

    def due(self, step: int, plain_step: float) -> bool:
        """Whether a new copy is wanted before `step`. Copies get rarer when they cost more than a twentieth of the time."""
        if self.taken and plain_step:
            self.every = max(EVERY, int(self.seconds / self.taken / (MOST_OF_TIME * plain_step)))
        return self.child is None or step - self.child.step >= self.every

    def take(self, step: int) -> Woken | None:
        """Copies the process as it is before `step`. Returns None in the process that goes on, and, if the copy is ever
        woken, what it was told, in the copy."""
        began = time.perf_counter()
        sys.stdout.flush()
        sys.stderr.flush()
        wake_read, wake_write = os.pipe()
        answer_read, answer_write = os.pipe()
        gc.freeze()  # keeps the collector of the copy from touching every page
        pid = os.fork()
        if pid == 0:
            os.close(wake_write)
            os.close(answer_read)
            if self.child is not None:  # the older copy ends when the last holder of its pipe lets go
                os.close(self.child.wake)
                os.close(self.child.answer)
            return _sleep(wake_read, answer_write)
        gc.unfreeze()
        os.close(wake_read)
        os.close(answer_write)
        self.drop()
        self.child = Child(pid, wake_write, answer_read, step)
        self.taken += 1
        self.seconds += time.perf_counter() - began
        return None

    def wake(self, last_step: int) -> dict | None:
        """Wakes the copy, lets it run to the end of `last_step` at most, and returns its report, or None when it met
        nothing, died, or took too long."""
        child, self.child = self.child, None
        if child is None:
            return None
        os.write(child.wake, struct.pack("q", last_step))
        os.close(child.wake)
        answer = _read_all(child.answer, LONGEST)
        if answer is None:
            os.kill(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)
        return json.loads(answer) if answer else None

    def drop(self) -> None:
        """Ends the copy that is kept, if any."""
        child, self.child = self.child, None
        if child is not None:
            os.close(child.wake)
            os.close(child.answer)
            os.waitpid(child.pid, 0)


def _sleep(wake: int, answer: int) -> Woken:
    """In the copy: waits to be woken, and ends for good when the other end of the pipe closes instead."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        told = os.read(wake, 8)
        if len(told) < 8:
            os._exit(0)
        os.close(wake)
        _silence(keep=answer)
        torch.set_num_threads(1)  # the pool's threads were not copied
        return Woken(*struct.unpack("q", told), answer)
    except BaseException:
        os._exit(1)


def _silence(keep: int) -> None:
    """Points everything that the copy could write to (streams, open files) at nothing, so that the replay prints and
    logs nothing a second time."""
    null = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd in (keep, null):
            continue
        with contextlib.suppress(OSError):
            if fd < 3 or (stat.S_ISREG(os.fstat(fd).st_mode) and _writable(fd)):
                os.dup2(null, fd)


def _writable(fd: int) -> bool:
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


def _read_all(fd: int, seconds: float) -> bytes | None:
    """Everything that comes through the pipe until it closes; None when that takes too long."""
    import select

    parts, end = [], time.monotonic() + seconds
    with os.fdopen(fd, "rb", buffering=0) as pipe:
        while (left := end - time.monotonic()) > 0:
            if select.select([pipe], [], [], min(left, 1.0))[0]:
                part = pipe.read(65536)
                if not part:
                    return b"".join(parts)
                parts.append(part)
    return None
