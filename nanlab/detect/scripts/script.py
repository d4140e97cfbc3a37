"""Runs an unchanged script as ``python script.py args`` would, the way ``python -m pdb`` does."""

from __future__ import annotations

import io
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

OURS = str(Path(__file__).parents[2])  # frames in the package are not the script's
RUNPY = runpy.__file__


class Stopped(BaseException):
    """Ends the script where a non-finite value is known. Not an Exception, so that ``except Exception`` in the script
    lets it pass."""


def run(target: Path | str, args: Sequence[str], on_exit: Callable[[int], None] = lambda status: None) -> int:
    """Runs the script at the path `target`, or the module of that dotted name, as ``__main__`` with ``sys.argv`` and
    ``sys.path[0]`` set as Python sets them, and restores both. Returns the status that Python would have exited with;
    what the script raises passes through. Where it calls ``sys.exit``, `on_exit` is called with the status while the
    script's variables are still alive."""
    with _as_main(target, args):
        try:
            if isinstance(target, Path):
                runpy.run_path(str(target), run_name="__main__")
            else:
                runpy.run_module(target, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            status = _status(end.code)
            on_exit(status)
            return status
    return 0


@contextmanager
def _as_main(target: Path | str, args: Sequence[str]) -> Iterator[None]:
    argv, search = sys.argv, sys.path[:]
    folder = target.resolve().parent if isinstance(target, Path) else Path.cwd()
    sys.argv, sys.path[:] = [str(target), *args], [str(folder), *search[1:]]
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, search


def _status(code: object) -> int:
    """What ``sys.exit(code)`` makes of the process: 0 for None, 1 and a line on the error stream for anything but a
    number."""
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def traceback_of(error: BaseException) -> str:
    """The traceback as Python would have printed it without nanlab: our frames, and runpy's, are left out."""
    shown = traceback.TracebackException.from_exception(error, compact=True)
    for part in _chain(shown):
        part.stack = traceback.StackSummary.from_list([f for f in part.stack if not _ours(f.filename)])
    out = io.StringIO()
    shown.print(file=out)
    return out.getvalue()


def _ours(filename: str) -> bool:
    return filename in (RUNPY, "<frozen runpy>") or filename.startswith(OURS)


def _chain(shown: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    todo: list[traceback.TracebackException | None] = [shown]
    seen = set()
    while todo:
        part = todo.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        todo += [part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())]
