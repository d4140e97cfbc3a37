"""The sieve hands on what matters of a log of any length and keeps memory flat."""

import tracemalloc
from collections.abc import Iterator

from nanlab.doctor import diagnose
from nanlab.doctor.sieve import AFTER, BEFORE, HEAD, PIECE, PIECES, TAIL, TELLING, close_lines

HEALTHY = "2026-01-01 10:00:00 INFO step {} loss 1.25 grad_norm 0.5\n"
DEAD = "2026-01-01 10:00:00 INFO step {} loss nan grad_norm nan\n"


def blocks(healthy: int, dead: int) -> Iterator[bytes]:
    """A log in pieces of no particular size."""
    lines, size = [], 0
    for step in range(healthy + dead):
        lines.append((HEALTHY if step < healthy else DEAD).format(step).encode())
        size += len(lines[-1])
        if size > 300_000:
            yield b"".join(lines)
            lines, size = [], 0
    yield b"".join(lines)


class File:
    """A file of which only one piece exists at a time."""

    def __init__(self, parts: Iterator[bytes]):
        self.parts = parts

    def read(self, size: int = -1) -> bytes:
        return next(self.parts, b"")


def test_a_short_log_is_read_line_by_line():
    lines = [f"line {i}" for i in range(50)]
    assert list(close_lines(["\n".join(lines).encode()])) == list(enumerate(lines, 1))


def test_a_line_that_a_chunk_cuts_in_two_stays_one():
    assert list(close_lines([b"one\ntw", b"o\nthr", b"ee"])) == [(1, "one"), (2, "two"), (3, "three")]


def test_frames_of_a_progress_bar_share_their_line():
    assert list(close_lines([b"a\rb\rc\nd\r\n"])) == [(1, "a"), (1, "b"), (1, "c"), (2, "d")]


def test_line_numbers_rise_and_the_first_bad_line_is_there_with_those_before_it():
    numbers = [number for number, _ in close_lines(blocks(100_000, 3000))]
    assert numbers == sorted(set(numbers))
    assert set(range(100_001 - BEFORE, 100_001 + AFTER)) <= set(numbers)
    assert set(range(1, HEAD)) <= set(numbers)
    assert 103_000 in numbers
    assert len(numbers) <= HEAD + BEFORE + 2 * AFTER + TELLING + TAIL + 20_000


def test_the_step_of_the_death_is_found_far_into_a_log():
    answer = diagnose(File(blocks(250_000, 50_000)))
    assert (answer.first_bad_step, answer.first_bad_line) == (250_000, 250_001)
    assert answer.lines == 300_000


def test_memory_does_not_grow_with_the_log(monkeypatch):
    """Four times the lines, the same peak. Few lines are read closely here: tracing makes reading slow."""
    for name in ("HEAD", "AFTER", "TELLING"):
        monkeypatch.setattr(f"nanlab.doctor.sieve.{name}", 300)

    def peak(lines: int) -> int:
        tracemalloc.start()
        diagnose(File(blocks(lines, 500)))
        _, top = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return top

    peak(1000)  # tables load once
    assert peak(100_000) < 1.25 * peak(25_000)


def test_a_line_of_a_million_characters_is_read_in_part_and_its_nan_is_found():
    line = b"x" * 1_000_000 + b" loss: nan"
    pieces = list(close_lines([line]))
    assert PIECES <= len(pieces) <= PIECES + 2
    assert max(len(text) for _, text in pieces) <= PIECE
    assert pieces[-1][1].endswith("loss: nan")


def test_a_million_empty_lines_are_counted():
    assert diagnose(b"\n" * 1_000_000 + b"step 5 loss nan\n").first_bad_line == 1_000_001
