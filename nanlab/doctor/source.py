"""Opens whatever holds a log (text, bytes, path, stream, gzip) and hands it on as chunks of UTF-8 bytes.

Memory stays flat: nothing here keeps more than one chunk. Taught in lesson 11.
"""

import bz2
import codecs
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

CHUNK = 1 << 20  # bytes read at once
BINARY_SHARE = 0.1  # control bytes beyond this share of the first chunk: not a text
_LOG_ENDINGS = (".log", ".txt", ".out", ".err", ".json", ".jsonl", ".csv", ".gz", ".bz2", ".xz")
_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_TEXT_CONTROLS = bytes(range(7, 14)) + b"\x1b"  # bell to carriage return, and escape


class NotALog(ValueError):
    """What was given is no text that could be a log; the message says what it looks like."""


def chunks(source: object) -> Iterator[bytes]:
    """UTF-8 bytes of `source`, at most about `CHUNK` at a time.

    `source` is text, bytes, a path, or an open file (text or binary). A string without a line break that names an
    existing file is taken as a path. Raises FileNotFoundError, IsADirectoryError or PermissionError as `open` does,
    and NotALog for binary content or a damaged archive.
    """
    if isinstance(source, str) and not _is_path(source):
        yield from _decoded(_slices(source.encode("utf-8", "replace")), plain=True)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        yield from _decoded(_read(io.BytesIO(source)))
    elif isinstance(source, (str, os.PathLike)):
        yield from _from_path(Path(source))
    elif hasattr(source, "read"):
        yield from _decoded(_read(cast(IO, source)))
    else:
        raise TypeError(f"diagnose reads text, bytes, a path or an open file, not {type(source).__name__}")


def _is_path(text: str) -> bool:
    if not text or len(text) > 1024 or "\n" in text or "\r" in text or "\0" in text:
        return False
    try:
        there = Path(text).exists()
    except OSError:
        return False
    return there or (text.lower().endswith(_LOG_ENDINGS) and " " not in text)


def _from_path(path: Path) -> Iterator[bytes]:
    if path.is_dir():
        raise IsADirectoryError(f"{path.name or path} is a directory; give one log file")
    with path.open("rb") as file:
        yield from _decoded(_read(file))


def _slices(data: bytes) -> Iterator[bytes]:
    return (data[i : i + CHUNK] for i in range(0, len(data), CHUNK))


def _read(file: IO) -> Iterator[bytes]:
    """Chunks of an open file; a compressed one is recognised by its first bytes and unpacked while it is read."""
    first = _bytes(file.read(CHUNK))
    for magic, opener in _OPENERS.items():
        if first.startswith(magic):
            yield from _unpacked(opener(_Joined(first, file)))
            return
    while first:
        yield first
        first = _bytes(file.read(CHUNK))


def _bytes(data: str | bytes) -> bytes:
    return data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    seen = 0
    try:
        while data := file.read(CHUNK):
            seen += len(data)
            yield data
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if not seen:  # cut short is usual while a run still writes; damaged from the start is not
            raise NotALog(f"the compressed log cannot be unpacked: {error}") from None


class _Joined(io.RawIOBase):
    """The bytes already read, then the rest of the stream: standard input cannot seek back."""

    def __init__(self, first: bytes, rest: IO[bytes]):
        self._first, self._rest = io.BytesIO(first), rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._first.read(size) or self._rest.read(size)

    def readinto(self, buffer) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _decoded(parts: Iterator[bytes], plain: bool = False) -> Iterator[bytes]:
    """The same bytes as UTF-8: UTF-16 (a Windows shell's redirect) is converted, binary content refused."""
    first = next(parts, b"")
    encoding = None if plain else _encoding(first)
    if encoding is None:
        if not plain:
            _refuse_binary(first)
        yield from chain([first] if first else [], parts)
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for part in chain([first], parts):
        yield decoder.decode(part).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _encoding(first: bytes) -> str | None:
    for bom, encoding in _BOMS.items():
        if first.startswith(bom):
            return encoding
    sample = first[:4096]
    odd = sample[1::2]
    return "utf-16-le" if len(odd) > 8 and odd.count(0) > 0.6 * len(odd) and sample[::2].count(0) == 0 else None


def _refuse_binary(first: bytes) -> None:
    if first.startswith(b"PK\x03\x04"):
        raise NotALog("this is a zip archive (a checkpoint, perhaps), not a log; unpack the log first")
    sample = first[:65536]
    controls = len(sample) - len(sample.translate(None, bytes(set(range(32)) - set(_TEXT_CONTROLS))))
    if controls > BINARY_SHARE * len(sample):
        raise NotALog("this is binary data, not the text of a run")
