"""The layouts that the generic reader was shown to misread, one small rule each."""

import json
import re

from nanlab.doctor.readers.values import number_of

# Darknet names a number behind it: "412: -nan, -nan avg, 0.000029 rate, 0.12 seconds, 412 images".
_DARKNET = re.compile(
    r"^\s*(\d{1,9}): (\S{1,24}), (\S{1,24}) avg(?: loss)?, (\S{1,24}) rate(?:, \S{1,20} seconds, (\d{1,12}) images)?"
)


def darknet(text: str) -> list[tuple[str, str]]:
    """(name, value) of Darknet's line for one batch."""
    match = _DARKNET.match(text)
    names = ("iteration", "loss", "avg loss", "lr", "images")
    return [(name, cell) for name, cell in zip(names, match.groups(), strict=True) if cell] if match else []


def json_record(text: str) -> list[tuple[str, str]]:
    """(name, value) of a line that is one JSON object; nested names are joined by a slash. fairseq and W&B write
    numbers as strings, Python writes NaN and Infinity bare."""
    start = text.find("{")
    if start < 0 or '":' not in text or not text.rstrip().endswith("}"):
        return []
    try:
        record = json.loads(text[start:])
    except (ValueError, RecursionError):
        return []
    return _flat(record) if isinstance(record, dict) else []


def _flat(record: dict, prefix: str = "", depth: int = 0) -> list[tuple[str, str]]:
    cells = []
    for key, value in record.items():
        name = f"{prefix}{key}".lower()
        if isinstance(value, dict) and depth < 4:
            cells += _flat(value, f"{name}/", depth + 1)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            cells.append((name, repr(value)))
        elif isinstance(value, str) and len(value) < 40 and number_of(value) is not None:
            cells.append((name, value))
        elif value is None:
            cells.append((name, "null"))
    return cells[:200]
