"""The map of a lab: what becomes of the run at every pair of two controls' settings, computed while the kernel idles.

The runs are made on the kernel's own event loop, a few milliseconds at a time: a key pressed meanwhile waits for one
run at most, no thread contends with another, and a cell of the notebook never meets a random state in use.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from nanlab.course.lab.controls import Choice, Control
from nanlab.course.lab.experiment import Experiment

_SLICE, _PAUSE, _SHOW = 0.012, 0.001, 0.12  # seconds: at work, idle, and between two pictures


class Survey:
    """The runs of one lab's map. `changed` is called whenever there is more to show."""

    def __init__(self, lab: Experiment, changed: Callable[[], None]):
        self.lab, self.changed = lab, changed
        assert lab.map is not None, "only a lab with a map is surveyed"
        self.map = lab.map
        self.cells: list[dict | None] = []
        self._fixed: dict[str, Any] = {}
        self._waiting: list[tuple[int, int]] = []
        self._timer: asyncio.TimerHandle | None = None

    def about(self) -> dict:
        """The axes, names and kinds, for the front end."""
        labels = {control.name: control.label for control in self.lab.controls}
        x, y = (self._control(name) for name in (self.map.x, self.map.y))
        return {
            "title": self.map.title,
            "x": [_name(x, value) for value in self.map.xs],
            "y": [_name(y, value) for value in self.map.ys],
            "x_label": labels[self.map.x],
            "y_label": labels[self.map.y],
            "kinds": [{"label": k.label, "tone": k.tone, "mark": k.mark} for k in self.map.kinds],
            "note": self.map.note,
            "every": self.map.every,
        }

    def state(self) -> dict:
        """The cells that are done, row by row, and the lines of theory once all are."""
        done = self.cells and not self._waiting
        lines = self.lab.theory() if done and self.lab.depth == "researcher" else ()
        return {
            "cells": list(self.cells),  # a copy: a change in place would not be seen as one
            "working": bool(self._timer),
            "lines": [{"label": line.label, "points": line.points} for line in lines],
        }

    def settings(self, x: int, y: int) -> dict[str, object]:
        """The two controls' settings at column `x` and row `y`."""
        return {self.map.x: self.map.xs[x], self.map.y: self.map.ys[y]}

    def start(self) -> None:
        """Begin, or go on with, the runs that are not done."""
        self._begin()
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(0, self._work, time.monotonic())
        self.changed()

    def stop(self) -> None:
        """Make no more runs until `start`."""
        if self._timer:
            self._timer.cancel()
        self._timer = None
        self.changed()

    def settings_changed(self) -> None:
        """Begin anew where a control off the map was changed and the map is in use."""
        if self.cells and self._fixed != self._others():
            self.start()

    def finish(self) -> None:
        """Make all runs at once."""
        self._begin()
        while self._waiting:
            self._one()

    def _begin(self) -> None:
        if self.cells and self._fixed == self._others():
            return
        self._fixed = self._others()
        self.cells = [None] * (len(self.map.xs) * len(self.map.ys))
        self._waiting = coarse_first(len(self.map.xs), len(self.map.ys))

    def _work(self, shown: float) -> None:
        until = time.monotonic() + _SLICE
        while self._waiting and time.monotonic() < until:
            self._one()
        now = time.monotonic()
        more = bool(self._waiting)
        self._timer = (
            asyncio.get_running_loop().call_later(_PAUSE, self._work, shown if now - shown < _SHOW else now)
            if more
            else None
        )
        if not more or now - shown >= _SHOW:
            self.changed()

    def _one(self) -> None:
        x, y = self._waiting.pop()
        try:
            kind, mark = self.lab.fate(self.lab.computed({**self._fixed, **self.settings(x, y)}))
        except ValueError:
            kind, mark = len(self.map.kinds) - 1, ""  # settings that can't even be started are the worst kind
        self.cells[y * len(self.map.xs) + x] = {"kind": kind, "mark": mark}

    def _others(self) -> dict[str, Any]:
        return {name: v for name, v in self.lab.values.items() if name not in (self.map.x, self.map.y)}

    def here(self) -> tuple[int, int] | None:
        """The lab's own cell, where its settings are near ones of the map."""
        x = _nearest(self.map.xs, self.lab.values[self.map.x])
        y = _nearest(self.map.ys, self.lab.values[self.map.y])
        return None if x is None or y is None else (x, y)

    def _control(self, name: str) -> Control:
        return next(control for control in self.lab.controls if control.name == name)


def coarse_first(columns: int, rows: int) -> list[tuple[int, int]]:
    """All cells, to be popped from the end: every fourth of every fourth row first, the rest as it refines that."""

    def fineness(cell: tuple[int, int]) -> int:
        return next(n for n, step in enumerate((4, 2, 1)) if cell[0] % step == 0 and cell[1] % step == 0)

    return sorted(((x, y) for y in range(rows) for x in range(columns)), key=fineness, reverse=True)


def _nearest(settings: Sequence, value) -> int | None:
    if value in settings:
        return list(settings).index(value)
    if isinstance(value, str) or value <= 0:
        return None
    near = min(range(len(settings)), key=lambda n: abs(_log(settings[n]) - _log(value)))
    return near if settings[0] <= value <= settings[-1] else None


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _name(control: Control, value) -> str:
    if isinstance(control, Choice):
        return next(text for text, option in control.pairs if option == value)
    return f"{float(f'{value:.2g}'):g}"
