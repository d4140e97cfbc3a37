"""Writes a scene to one file, all or nothing, and reads it back without running anything that the file holds.

The file is a ``torch.save`` archive of plain data and tensors; `archive` reads it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
from pathlib import Path
from typing import Any

import torch

from nanlab.detect.replay import archive

FORMAT = 1  # raised when an older nanlab could no longer read what a newer one writes
MARK = "nanlab scene"
ARCHIVE = b"PK\x03\x04"  # what a torch.save file starts with


class SceneError(ValueError):
    """A scene that cannot be written, read or used; the message names what, where and what to do."""


def write(data: dict[str, object], path: str | os.PathLike) -> Path:
    """Writes `data` to `path` through a temporary file beside it, so that a scene is there whole or not at all.

    Raises `SceneError` when the folder is missing or read-only or the disk is full; nothing is left behind then.
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)  # a link that someone put there goes, not what it points to
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            torch.save({MARK: FORMAT, **data}, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise SceneError(f"the scene could not be written to {target}: {_why(error, target)}") from error
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    return target


def _why(error: Exception, target: Path) -> str:
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.ENOENT:
        return f"the folder {target.parent} does not exist; make it, or give another path"
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"the folder {target.parent} is read-only; give a path that you may write to"
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "the disk is full; free some space, or give a path on another disk"
    if code in (errno.EISDIR, errno.ENOTDIR):
        return "that is a folder, or its folder is a file; give the path of a file"
    return f"{type(error).__name__}: {error}"


def read(path: str | os.PathLike) -> tuple[dict[str, Any], int]:
    """The data of the scene at `path`, its tensors on the CPU, and how many parts it can honestly have.

    Raises `SceneError` when there is no file, when it is truncated or damaged, when it is no scene, and when a newer
    nanlab wrote it.
    """
    source = Path(path)
    data, parts = _load(source)
    if not isinstance(data, dict) or MARK not in data:
        raise SceneError(f"{source} is a PyTorch file but no scene; give a file that Scene.save or the guard wrote")
    if data[MARK] != FORMAT:
        formats = f"scene format {data[MARK]!r}, this nanlab reads {FORMAT}"
        raise SceneError(f"{source} has {formats}; read it with the nanlab that wrote it")
    return data, parts


def _load(source: Path) -> tuple[object, int]:
    try:
        with source.open("rb") as file:
            start = file.read(len(ARCHIVE))
    except FileNotFoundError as error:
        raise SceneError(f"there is no scene at {source}; check the path") from error
    except OSError as error:
        raise SceneError(f"{source} cannot be opened ({error.strerror}); check the path and its permissions") from error
    if start != ARCHIVE:
        what = "is empty" if not start else "is not a scene"
        raise SceneError(f"{source} {what}; give a file that Scene.save or the guard wrote")
    try:
        return archive.load(source)
    except pickle.UnpicklingError as error:
        raise SceneError(
            f"{source} holds something other than plain data, or is damaged; nothing of it was run"
        ) from error
    except Exception as error:  # the reader of a damaged archive raises whatever it trips over
        raise SceneError(f"{source} is truncated or damaged and cannot be read; save the scene again") from error
