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
TELLING = 6000  # telling lines handed on past the head; further ones are counted
PIECE = 16384  # characters of one line that are read at once
PIECES = 6  # pieces of one line that are read; of the rest only what holds a telling word

_WORDS = re.compile(
    rb"(?<![a-z])nan(?!o)|(?<![a-z])inf(?:inity)?(?![a-z])|1\.#|traceback|overflow|error|skipping|diverge|"
    rb"non-?finite|not finite|infinite|['\"]loss['\"]: 0\.0[,}]|resum|restor|assert|invalid|reducing"
)
_NEEDLES = (b"nan", b"inf", b"1.#", b"traceback", b"overflow", b"error", b"skipping", b"diverge", b"finite",
            b"loss': 0.0", b'loss": 0.0', b"resum", b"restor", b"assert", b"invalid", b"reducing")  # fmt: skip


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
        self.died = False
        self.last = b""  # the previous block, for the lines before a telling one
        self.last_number = 1
        self.done = 0  # highest line handed on
        self.pieces = 0  # pieces of the current line already read

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
        elif telling := _telling(block):
            yield from self._around(block, telling)
        self.last, self.last_number = block, self.number
        self.number += lines

    def end(self) -> Iterator[tuple[int, str]]:
        rows = list(_numbered(self.last, self.last_number))[-TAIL:]
        yield from self._hand_on(rows)

    def _all(self, block: bytes) -> Iterator[tuple[int, str]]:
        for number, row in _numbered(block, self.number):
            self.done = number
            yield from self._frames(number, row)

    def _around(self, block: bytes, telling: list[int]) -> Iterator[tuple[int, str]]:
        """The telling lines of a block; at the first one also the lines before, and from then on all for a while."""
        rows = list(_numbered(block, self.number))
        wanted = {i for i in telling if i < len(rows)}
        if not self.died:
            self.died, first = True, min(wanted)
            before = list(_numbered(self.last, self.last_number)) if first < BEFORE else []
            yield from self._hand_on(before[-BEFORE:])
            wanted |= set(range(max(0, first - BEFORE), len(rows)))
            self.close = AFTER
        chosen = [rows[i] for i in sorted(wanted)][: max(self.told, 1)]
        self.told -= len(chosen)
        yield from self._hand_on(chosen)

    def _hand_on(self, rows: list[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
        for number, row in rows:
            if number > self.done:
                self.done = number
                yield from self._frames(number, row)

    def _frames(self, number: int, row: bytes) -> Iterator[tuple[int, str]]:
        for frame in row.split(b"\r"):
            if frame:
                yield from _pieces(number, frame)


def _numbered(block: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    rows = block.split(b"\n")
    if not rows[-1]:
        rows.pop()
    return enumerate(rows, start)


def _pieces(number: int, frame: bytes) -> Iterator[tuple[int, str]]:
    """One line as text; of a very long one the first pieces, and of the rest only those with a telling word."""
    for count, start in enumerate(range(0, len(frame), PIECE)):
        piece = frame[start : start + PIECE]
        if count < PIECES or _WORDS.search(piece.lower()):
            yield number, piece.decode("utf-8", "replace")


def _telling(block: bytes) -> list[int]:
    """Indices of the block's lines that hold a telling word. Cheap when there is none: a few searches for literals."""
    low = block.lower()
    if _holds_lost_loss(low):
        return list(range(block.count(b"\n") + 1))
    if not any(_count(low, needle) for needle in _NEEDLES):
        return []
    found, line, at = [], 0, 0
    for match in _WORDS.finditer(low):
        line += low.count(b"\n", at, match.start())
        at = match.start()
        if not found or found[-1] != line:
            found.append(line)
    return found


def _count(low: bytes, needle: bytes) -> bool:
    if needle == b"inf":  # most logs say "info" on every line
        return low.count(b"inf") > low.count(b"info")
    return needle in low


def _holds_lost_loss(low: bytes) -> bool:
    """Megatron drops the field `lm loss` from the line of an iteration whose loss is not finite."""
    return 0 < low.count(b"lm loss") < low.count(b"consumed samples")
