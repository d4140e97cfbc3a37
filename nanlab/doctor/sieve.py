"""Chooses which lines of a log are read closely, so that a gigabyte costs a scan and not a parse.

The first lines, the last ones, every line with a telling word and the lines before it are handed on; the rest is only
counted. Memory is bounded by the constants below whatever the size of the log.
"""

import re
from collections.abc import Iterable, Iterator

HEAD = 4000  # lines read closely at the start: a pasted log is read whole
AFTER = 1500  # lines read closely after the first telling one
BEFORE = 400  # lines handed on before a telling line that follows a skipped stretch
TAIL = 400  # lines read closely at the end
TELLING = 4000  # lines with a sign of a bad value that are handed on past the head; further ones are counted
ASIDE = 1500  # lines with a message of another kind, likewise
PIECE = 16384  # characters of one line that are read at once
PIECES = 6  # pieces of one line that are read; of the rest only what holds a telling word
LONG = 24  # pieces of one very long line that are read at all

_BAD = re.compile(
    rb"(?<![a-z])nan(?!o)|(?<![a-z])inf(?:inity)?(?![a-z])|1\.#|traceback|non-?finite|not finite|infinite"
    rb"|['\"]loss['\"]: 0\.0[,}]"
)
_BAD_NEEDLES = (b"nan", b"inf", b"1.#", b"traceback", b"finite", b"loss': 0.0", b'loss": 0.0')
_MESSAGE = re.compile(rb"overflow|error|skipping|diverge|resum|restor|assert|invalid|reducing")
_MESSAGE_NEEDLES = (
    b"overflow",
    b"error",
    b"skipping",
    b"diverge",
    b"resum",
    b"restor",
    b"assert",
    b"invalid",
    b"reducing",
)


def close_lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """(line number from 1, text) of the lines worth reading, in order. A progress bar's frames, which share a line
    and are parted by carriage returns, come one by one under that line's number."""
    skim = _Skim()
    for block in _blocks(chunks):
        yield from skim.take(block)
    yield from skim.end()


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks cut behind a line break; a line that is longer than a chunk is cut where a chunk ends."""
    carry = b""
    for chunk in chunks:
        data = carry + chunk
        cut = max(data.rfind(b"\n"), -1) + 1 or (data.rfind(b"\r") + 1 if len(data) > PIECE * PIECES else 0)
        if not cut and len(data) > 1 << 20:
            cut = len(data)
        carry = data[cut:]
        if cut:
            yield data[:cut]
    if carry:
        yield carry


class _Skim:
    """State of one pass: how many lines went by, and how many may still be read closely."""

    def __init__(self) -> None:
        self.number = 1  # of the line at which the next block starts
        self.close = HEAD
        self.told = TELLING
        self.aside = ASIDE
        self.died = False
        self.last = b""  # the previous block, for the lines before a telling one
        self.last_number = 1
        self.done = 0  # highest line handed on
        self.long = (0, 0)  # a line number, and how many pieces of a frame longer than one were read under it

    def take(self, block: bytes) -> Iterator[tuple[int, str]]:
        lines = block.count(b"\n")
        if 0 < self.close < lines:
            rest = block.split(b"\n", self.close)[-1]
            yield from self.take(block[: len(block) - len(rest)])
            yield from self.take(rest)
            return
        if self.close > 0:
            yield from self._all(block)
            self.close -= lines
        else:
            yield from self._skimmed(block)
        self.last, self.last_number = block, self.number
        self.number += lines

    def end(self) -> Iterator[tuple[int, str]]:
        rows = list(_numbered(self.last, self.last_number))[-TAIL:]
        yield from self._hand_on(rows)

    def _all(self, block: bytes) -> Iterator[tuple[int, str]]:
        for number, row in _numbered(block, self.number):
            self.done = number
            yield from self._frames(number, row)

    def _skimmed(self, block: bytes) -> Iterator[tuple[int, str]]:
        """The telling lines of a block that is otherwise skipped."""
        low = block.lower()
        bad = _bad_lines(low) if self.told > 0 else []
        messages = _lines_with(low, _MESSAGE, _MESSAGE_NEEDLES) if self.aside > 0 else []
        if not bad and not messages:
            return
        rows = list(_numbered(block, self.number))
        if bad and not self.died:
            yield from self._death(rows, bad[0])
        chosen = sorted({*bad[: self.told], *messages[: self.aside]})
        self.told -= len(bad)
        self.aside -= len(messages)
        yield from self._hand_on([rows[i] for i in chosen if i < len(rows)])

    def _death(self, rows: list[tuple[int, bytes]], first: int) -> Iterator[tuple[int, str]]:
        """The lines before the first sign of a bad value, and from then on all lines for a while."""
        self.died = True
        self.close = AFTER
        if first < BEFORE:
            yield from self._hand_on(list(_numbered(self.last, self.last_number))[first - BEFORE :])
        yield from self._hand_on(rows[max(0, first - BEFORE) : first + AFTER])

    def _hand_on(self, rows: list[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
        for number, row in rows:
            if number > self.done:
                self.done = number
                yield from self._frames(number, row)

    def _frames(self, number: int, row: bytes) -> Iterator[tuple[int, str]]:
        for frame in row.split(b"\r"):
            for piece in _pieces(number, frame) if frame else ():
                if len(frame) > PIECE:
                    self.long = (number, self.long[1] + 1 if self.long[0] == number else 1)
                    if self.long[1] > LONG:
                        break
                yield piece


def _numbered(block: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    rows = block.split(b"\n")
    if not rows[-1]:
        rows.pop()
    return enumerate(rows, start)


def _pieces(number: int, frame: bytes) -> Iterator[tuple[int, str]]:
    """One line as text; of a very long one the first pieces, and of the rest only those with a telling word."""
    for count, start in enumerate(range(0, len(frame), PIECE)):
        piece = frame[start : start + PIECE]
        if count < PIECES or _BAD.search(piece.lower()):
            yield number, piece.decode("utf-8", "replace")


def _bad_lines(low: bytes) -> list[int]:
    """Indices of the lines that may show a bad value. Megatron drops the field `lm loss` from such a line."""
    if 0 < low.count(b"lm loss") < low.count(b"consumed samples"):
        return list(range(low.count(b"\n") + 1))
    return _lines_with(low, _BAD, _BAD_NEEDLES)


def _lines_with(low: bytes, words: re.Pattern, needles: tuple[bytes, ...]) -> list[int]:
    """Indices of the lines that hold one of the words; a few searches for literals where none does."""
    if not any(_holds(low, needle) for needle in needles):
        return []
    found: list[int] = []
    line = at = 0
    for match in words.finditer(low):
        line += low.count(b"\n", at, match.start())
        at = match.start()
        if not found or found[-1] != line:
            found.append(line)
    return found


def _holds(low: bytes, needle: bytes) -> bool:
    if needle == b"inf":  # most logs say "info" on every line
        return low.count(b"inf") > low.count(b"info")
    return needle in low
