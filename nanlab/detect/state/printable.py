"""Text that is safe to show: names from scripts, batches and scene files may hold what steers a terminal."""

from __future__ import annotations

import unicodedata

KEPT = "\n\t"
STEERING = {"Cc", "Cf"}  # control characters; format characters, which turn the direction of writing


def printable(text: str) -> str:
    """`text` with every control and format character, but for line ends and tabs, written as an escape."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c if c in KEPT or unicodedata.category(c) not in STEERING else _escaped(c) for c in text)


def _escaped(c: str) -> str:
    return c.encode("unicode_escape").decode("ascii")
