"""The generic reader: one line of any log to one event, with the little that has to be remembered between lines."""

import re

from nanlab.doctor.readers import dedicated
from nanlab.doctor.readers.counters import Counters, counters, rank_of
from nanlab.doctor.readers.event import Event, Value
from nanlab.doctor.readers.roles import is_average, is_validation, may_be_infinite, role_of
from nanlab.doctor.readers.tables import Table
from nanlab.doctor.readers.values import Pair, number_of, pairs, without_clock

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;?]{0,20}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[@-Z\\^_])|[\x00-\x08\x0b-\x1f\x7f]"
)
_FRAME = re.compile(
    r"^\W{0,12}(?:\[?rank\d{1,4}\]?:? ?)?\s{0,8}File \"?([^\"\n]{1,400})\"?, line (\d{1,7})|^\s{0,4}(?:Cell In"
    r"|Input In) ?\["
)
_WARNED = re.compile(r":\d{1,7}: \w{0,40}Warning: ")
_ERROR = re.compile(
    r"^(?:\[?rank\d{1,4}\]?:? )?(?:[A-Za-z_][\w]{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Warning"
    r"|Exit)\b(?::|$)"
)
_HEADER = re.compile(r"^\W{0,40}(?:training |train )?(?:epoch|step|iteration|iter|batch|round)\b", re.IGNORECASE)
_SECTION = re.compile(
    r"^\W{0,12}(?:begin |start |running )?(valid|eval|test)(?:ation|uation|uating|ing|ate)?\b(?! ?set)", re.IGNORECASE
)
_COUNTER_WORD = re.compile(r"\s?\b(?:global_)?(?:step|iteration|iter|epoch|batch)s?\b")
_PERPLEXITY = re.compile(r"ppl|perplexity")
_ALONE = re.compile(r"\b(?:global_?step|total_?timesteps|num_updates|iterations?|step)\b")
MOST_VALUES = 300  # of one line that are kept


class Reader:
    """Reads lines in order. It remembers the heading of a table, the last counter and whether a traceback is open."""

    def __init__(self) -> None:
        self._table = Table()
        self._open = False  # inside a traceback
        self._code_next = False
        self._warned = False  # the last line was a Python warning
        self._step: int | None = None
        self._epoch: float | None = None
        self._block = 0

    def read(self, line: int, text: str) -> Event:
        """The event of line number `line` (from 1)."""
        text = _ESCAPES.sub("", text).rstrip() if not text.isascii() or not text.isprintable() else text.rstrip()
        event = Event(line, text, low=text.lower())
        event.trace = self._trace(text)
        if event.trace in {"frame", "code"}:
            return self._placed(event)
        self._numbers(event)
        return event

    def _trace(self, text: str) -> str:
        if "Traceback (most recent call last)" in text or "Traceback of forward call" in text:
            self._open = True
            return ""
        if _FRAME.match(text):
            self._open = self._code_next = True
            return "frame"
        if self._warned and text[:1] == " ":
            self._warned = False
            return "code"  # the source line under a warning
        self._warned = bool(_WARNED.search(text))
        if not self._open:
            return "exception" if _ERROR.match(text) else ""
        if _ERROR.match(text):
            self._open = self._code_next = False
            return "exception"
        if (self._code_next and text[:1] in " \t[") or text.lstrip().startswith(("^", "~")):
            self._code_next = text.lstrip().startswith(("^", "~"))
            return "code"
        self._code_next = False
        self._open = text[:1] in " \t"
        return ""

    def _numbers(self, event: Event) -> None:
        plain = without_clock(event.text)
        cells = dedicated.darknet(plain) or dedicated.json_record(plain)
        if not cells and not self._table.heading(event.line, plain):
            cells = self._table.row(event.line, plain)
        found = _from_cells(cells) if cells else pairs(plain)[:MOST_VALUES]
        head = event.low[: found[0].start] if found and not cells else event.low[:40]
        event.validation = is_validation(head[-80:])
        event.rank = rank_of(event.text)
        event.values = tuple(_value(pair, event.validation) for pair in found if not pair.percent)
        has_loss = any(v.role in {"loss", "gradient"} for v in event.values) or any(
            v.kind != "finite" for v in event.values
        )
        self._count(event, counters(plain, found, has_loss), has_loss)

    def _count(self, event: Event, own: Counters, has_loss: bool) -> None:
        """Gives the event its step, its own or the one of the block that it stands in."""
        epoch = own.epoch
        step = own.step
        if step is None and epoch is not None and epoch == int(epoch) and (own.whole or self._step is None or has_loss):
            step = int(epoch)
        if own.whole and step is None and self._epoch is not None and self._epoch == int(self._epoch):
            step = int(self._epoch)
        event.counted = own.step is not None or epoch is not None
        if event.counted:
            self._block += 1
        starts = bool(_HEADER.match(event.text)) or (
            own.step is not None and len(event.values) <= 3 and _ALONE.search(event.low) is not None
        )
        if epoch is not None and (has_loss or starts):
            if epoch != self._epoch and own.step is None and epoch == int(epoch):
                self._step = None
            self._epoch = epoch
        if step is not None and (has_loss or starts or "%|" in event.text or "it/s" in event.text):
            self._step = step
        if own.whole and self._epoch is not None and own.epoch is None and self._epoch == int(self._epoch):
            event.step, self._step = int(self._epoch), int(self._epoch)
            event.epoch, event.block = self._epoch, self._block
            return
        event.step, event.total = step, own.total
        self._placed(event)

    def _placed(self, event: Event) -> Event:
        """Fills in step and epoch from what stands above."""
        if event.step is None:
            event.step = self._step
            if event.step is None and self._epoch is not None and self._epoch == int(self._epoch):
                event.step = int(self._epoch)
        event.epoch = self._epoch
        event.block = self._block
        return event


def _from_cells(cells: list[tuple[str, str]]) -> list[Pair]:
    found = []
    for name, raw in cells:
        first, _, total = raw.partition("/")
        number = number_of(first)
        if number is not None:
            found.append(Pair(name.strip(), first, number, 0, 0, raw.endswith("%"), _finite(number_of(total))))
    return found


def _finite(number: float | None) -> float | None:
    return number if number is not None and abs(number) < 1e12 else None


def _value(pair: Pair, validation: bool) -> Value:
    average = pair.inside or is_average(pair.name)
    if (
        pair.number - pair.number != 0 and " " in pair.name
    ):  # "score at iteration 100 is nan": the loss, not the counter
        pair.name = _COUNTER_WORD.sub("", pair.name).strip() or pair.name
    if abs(pair.number) == float("inf") and _PERPLEXITY.search(pair.name):
        return Value(pair.name, pair.number, pair.raw, "metric", validation)  # exp of a finite loss overflows early
    if pair.number == float("-inf") and role_of(pair.name) == "state":
        return Value(pair.name, pair.number, pair.raw, "constant")  # scores masked with -inf
    if abs(pair.number) == float("inf") and may_be_infinite(pair.name):
        return Value(pair.name, pair.number, pair.raw, "constant")
    return Value(
        pair.name,
        pair.number,
        pair.raw,
        role_of(pair.name),
        validation or is_validation(pair.name),
        average,
        pair.prose,
    )
