"""The events of one log gathered: which numbers were bad, what messages were printed, how the loss went.

Bounded by what the sieve hands on; nothing here grows with the size of the log beyond that.
"""

from collections import Counter
from dataclasses import dataclass, field

from nanlab.doctor.readers.event import HOLLOW, Event, Value
from nanlab.doctor.vocabulary import Hit, operation, phrases

MOST_HITS = 60  # of one phrase that are kept
MOST_EVENTS = 30_000


@dataclass(slots=True)
class Point:
    """One value with its event."""

    event: Event
    value: Value

    @property
    def line(self) -> int:
        return self.event.line


@dataclass
class Run:
    """A log as the signatures see it."""

    events: list[Event] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    lines: int = 0
    _kept: Counter = field(default_factory=Counter)
    _points: dict = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Takes the next event."""
        self.lines = max(self.lines, event.line)
        if not event.text:
            return
        if event.trace in {"", "exception"}:
            self._listen(event)
        if len(self.events) < MOST_EVENTS and (event.values or event.trace or event.counted or len(self.events) < 5000):
            self.events.append(event)

    def _listen(self, event: Event) -> None:
        for phrase in phrases(event.low):
            self._kept[phrase.says] += 1
            if self._kept[phrase.says] <= MOST_HITS:
                self.hits.append(Hit(phrase, event.line, event.step, event.counted, event.validation, event.low[:400]))

    def count(self, says: str) -> int:
        """How often a phrase came, kept or not."""
        return self._kept[says]

    def signals(self, *names: str) -> list[Hit]:
        return [hit for hit in self.hits if hit.phrase.signal in names]

    def points(self, *roles: str, validation: bool = False, average: bool = False) -> list[Point]:
        """All values of these roles, in order. Signatures ask often: the answer is kept until an event is added."""
        key = (roles, validation, average, len(self.events))
        if key not in self._points:
            self._points[key] = [
                Point(event, value)
                for event in self.events
                for value in event.values
                if value.role in roles
                and value.validation == validation
                and value.average == average
                and value.raw not in HOLLOW
            ]
        return self._points[key]

    def losses(self) -> list[Point]:
        """The training loss over the run: its most frequent name, running means only when there is nothing else."""
        found = self.points("loss") or self.points("loss", average=True)
        names = Counter(point.value.name for point in found)
        if not names:
            return []
        best = max(names, key=lambda name: (_is_total(name) * 2 + 1) * names[name])
        return [point for point in found if point.value.name == best]

    def operation(self) -> tuple[str, int] | None:
        """The operation that a traceback or a warning names, and the line that does."""
        for event in self.events:
            if event.trace in {"", "exception"} and ("backward" in event.low or "floatingpointerror" in event.low):
                name = operation(event.low)
                if name and ("nan" in event.low or "error" in event.low or "encountered" in event.low):
                    return name, event.line
        return None


def _is_total(name: str) -> bool:
    last = name.split("/")[-1]
    return last in {
        "loss",
        "total_loss",
        "total loss",
        "train_loss",
        "train loss",
        "lm loss",
        "training loss",
        "loss_total",
        "cost",
    }
