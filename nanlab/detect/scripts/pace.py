"""Decides from measured steps whether the hunt may stay on, or costs too much and gives way to the guard."""

from __future__ import annotations

from statistics import median

FREE = 2.0  # seconds of hunted steps before anything is measured: a run that short has nothing to gain
TRIALS = 3  # steps of each kind that are compared, by their medians
TOO_SLOW = 1.5  # times a plain step


class Pace:
    """Told the length of each step (processor time of the thread, which other work on the machine does not stretch),
    says how the next one is to be run: ``"hunt"`` or ``"plain"``."""

    def __init__(self) -> None:
        self.mode = "hunt"
        self.decided = False
        self.spent = 0.0
        self._times: dict[str, list[float]] = {"hunt": [], "plain": []}

    @property
    def ratio(self) -> float | None:
        """A hunted step over a plain one, once both were measured."""
        if not all(self._times.values()):
            return None
        return median(self._times["hunt"]) / max(median(self._times["plain"]), 1e-9)

    @property
    def plain_step(self) -> float:
        """Seconds of a plain step; 0.0 before one was measured."""
        return median(self._times["plain"]) if self._times["plain"] else 0.0

    def took(self, seconds: float) -> str:
        """Notes that the last step took `seconds` and returns how the next one is run."""
        if self.decided:
            return self.mode
        if self.spent < FREE:
            self.spent += seconds
            return self.mode
        times = self._times[self.mode]
        times.append(seconds)
        if all(len(t) >= TRIALS for t in self._times.values()):
            self.decided = True
            self.mode = "plain" if (self.ratio or 0.0) > TOO_SLOW else "hunt"
        else:
            self.mode = "plain" if self.mode == "hunt" else "hunt"
        return self.mode
