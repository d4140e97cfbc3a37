"""The generic reader: one line of any log to one event, with the little that has to be remembered between lines."""

import re

from nanlab.doctor.readers import dedicated
from nanlab.doctor.readers.counters import counters, rank_of
from nanlab.doctor.readers.event import HOLLOW, Event, Value
from nanlab.doctor.readers.placing import Place
from nanlab.doctor.readers.roles import is_average, is_validation, may_be_infinite, role_of
from nanlab.doctor.readers.statements import stated
from nanlab.doctor.readers.tables import Table
from nanlab.doctor.readers.tracebacks import Traceback
from nanlab.doctor.readers.values import Pair, number_of, pairs, without_clock

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;?]{0,20}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[@-Z\\^_])|[\x00-\x08\x0b-\x1f\x7f]"
)
_COUNTER_WORD = re.compile(r"\s?\b(?:global_)?(?:step|iteration|iter|epoch|batch)s?\b")
_PERPLEXITY = re.compile(r"ppl|perplexity")
MOST_VALUES = 300  # of one line that are kept
MOST_TOTAL = 1e12  # beyond this a number counts nothing


class Reader:
    """Reads lines in order. It remembers the heading of a table, the last counter and whether a traceback is open."""

    def __init__(self) -> None:
        self._table = Table()
        self._traceback = Traceback()
        self._place = Place()

    def read(self, line: int, text: str) -> Event:
        """The event of line number `line` (from 1)."""
        text = text.rstrip() if text.isascii() and text.isprintable() else _ESCAPES.sub("", text).rstrip()
        event = Event(line, text, low=text.lower())
        event.trace = self._traceback.place(text)
        if event.trace in {"frame", "code"}:
            self._place.inherit(event)
        else:
            self._numbers(event)
        return event

    def _numbers(self, event: Event) -> None:
        """Values, rank, counters of the line."""
        plain = without_clock(event.text)
        cells = self._cells(event.line, plain)
        found = _from_cells(cells) if cells else pairs(plain)[:MOST_VALUES]
        head = event.low[: found[0].start] if found and not cells else event.low[:40]
        event.validation = is_validation(head[-80:])
        event.rank = rank_of(event.text)
        event.values = tuple(_value(pair, event.validation) for pair in found if not pair.percent)
        if "finite" in event.low or "true" in event.low or "none" in event.low or "null" in event.low:
            event.values += tuple(v for v in stated(event.low) if v.raw != "null" or not cells)
        has_loss = any(v.role in {"loss", "gradient"} or v.kind != "finite" for v in event.values)
        self._place.count(event, counters(plain, found, has_loss), has_loss)

    def _cells(self, line: int, plain: str) -> list[tuple[str, str]]:
        """(name, value) where a dedicated reader or a table's heading knows the layout."""
        cells = dedicated.darknet(plain) or dedicated.json_record(plain)
        if not cells and not self._table.heading(line, plain):
            cells = self._table.row(line, plain)
        return cells


def _from_cells(cells: list[tuple[str, str]]) -> list[Pair]:
    found = []
    for name, raw in cells:
        first, _, rest = raw.partition("/")
        number, total = number_of(first), number_of(rest)
        number = float("nan") if first in HOLLOW and role_of(name.strip()) == "loss" else number
        if number is not None:
            total = total if total is not None and abs(total) < MOST_TOTAL else None
            found.append(Pair(name.strip(), first, number, 0, 0, raw.endswith("%"), total))
    return found


def _value(pair: Pair, validation: bool) -> Value:
    bad = pair.number - pair.number != 0
    # "score at iteration 100 is nan": the score is bad and not the counter
    name = _COUNTER_WORD.sub("", pair.name).strip() or pair.name if bad and " " in pair.name else pair.name
    value = Value(name, pair.number, pair.raw, role_of(name), validation or is_validation(name))
    value.average, value.prose = pair.inside or is_average(name), pair.prose
    if abs(pair.number) == float("inf"):
        value.role = _role_of_inf(name, pair.number, value.role)
    return value


def _role_of_inf(name: str, number: float, role: str) -> str:
    """exp of a finite loss overflows early, scores are masked with -inf, and many settings start at inf."""
    if _PERPLEXITY.search(name):
        return "metric"
    return "constant" if may_be_infinite(name) or (number < 0 and role == "state") else role
