"""Processes that a script starts: they are not watched, and nothing of ours may live on in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing import get_start_method, process

from torch.utils.data._utils import worker

from nanlab.detect import patching

_hooked: list[Children] = []  # those whose scripts run; hooks of os.fork can't be taken back


class Children:
    """Counts the processes that are started while it listens. `leave` is called in each that is a copy of this one."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self.leave = leave
        self.forked = self.started = 0

    def listen(self) -> Callable[[], None]:
        _register()
        _hooked.append(self)
        end = patching.on_process(self._starts)

        def stop() -> None:
            end()
            if self in _hooked:
                _hooked.remove(self)

        return stop

    def _starts(self, started: process.BaseProcess) -> None:
        """A process of ``multiprocessing``; a DataLoader's worker is not counted, its samples can be fetched again."""
        loads = getattr(started, "_target", None) is worker._worker_loop
        forks = (getattr(started, "_start_method", None) or get_start_method()) == "fork"  # then that is heard as well
        self.forked -= forks and loads
        self.started += not forks and not loads

    def __str__(self) -> str:
        """What was not watched, as a phrase; empty where nothing was started."""
        number = max(0, self.forked) + self.started
        if not number:
            return ""
        return "a process that the script started" if number == 1 else f"{number} processes that the script started"


def _register() -> None:
    if not _registered:
        _registered.append(True)
        os.register_at_fork(after_in_parent=_parent, after_in_child=_child)


_registered: list[bool] = []


def _parent() -> None:
    for one in _hooked:
        one.forked += not _own[0]


def _child() -> None:
    if not _own[0]:
        for one in list(_hooked):
            one.leave()
        _hooked.clear()


_own = [0]


def own_fork() -> int:
    """``os.fork`` for a copy that goes on as this process would: it stays watched, and is not counted."""
    _own[0] += 1
    try:
        return os.fork()
    finally:
        _own[0] -= 1
