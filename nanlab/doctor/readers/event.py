"""What a reader makes of one line of a log."""

from dataclasses import dataclass
from math import isfinite

HOLLOW = {"", "null", "None"}  # what stands where no number does; `onset` decides whether a NaN stood there


@dataclass(slots=True)
class Value:
    """A number that a line names. `role` is ``loss``, ``gradient``, ``scale``, ``lr``, ``metric``, ``state`` (weights,
    activations, logits), ``unnamed`` (a column without a heading) or ``other``."""

    name: str
    number: float
    raw: str
    role: str
    validation: bool = False
    average: bool = False  # a running mean: it stays bad for long after one bad value
    prose: bool = False  # read in a sentence, not in a record

    @property
    def finite(self) -> bool:
        return isfinite(self.number)

    @property
    def kind(self) -> str:
        return "nan" if self.number != self.number else "inf" if not self.finite else "finite"


@dataclass(slots=True)
class Event:
    """One line. `step` is its finest counter as printed, or the one that stands above it in a block."""

    line: int
    text: str
    values: tuple[Value, ...] = ()
    step: int | None = None
    epoch: float | None = None
    total: int | None = None  # steps in the epoch, where the line says it
    counted: bool = False  # the line carries its own counter
    rank: int | None = None
    validation: bool = False
    trace: str = ""  # "frame", "code", "exception" or "": this line's place in a traceback
    low: str = ""
    block: int = 0  # number of the last counter line at or above this one

    def of(self, *roles: str) -> list[Value]:
        return [value for value in self.values if value.role in roles]
