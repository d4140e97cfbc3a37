"""One report file for all processes of a distributed job: what one of them found is not overwritten by the others."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from nanlab.detect.scripts.scripthunt import Outcome


def write(path: Path, outcome: Outcome) -> None:
    """Writes the outcome to `path` as JSON. Under a launcher such as torchrun (it sets RANK) the file keeps the finding
    of the earliest step that any process of the same job has written; `rank` says whose it is."""
    data = outcome.to_json()
    rank = os.environ.get("RANK")
    if rank is None:
        path.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
        return
    data |= {"rank": int(rank), "job": _job()}
    with _alone(path):
        if (other := _written(path)) is None or _weight(data) < _weight(other):
            whole = path.with_name(f".{path.name}.{rank}")
            whole.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
            whole.replace(path)


def _job() -> str:
    names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")
    return f"{' '.join(os.environ.get(name, '') for name in names)} {os.getppid()}"


def _written(path: Path) -> dict | None:
    """What another process of this job wrote."""
    with suppress(OSError, ValueError):
        data = json.loads(path.read_text("utf-8"))
        return data if isinstance(data, dict) and data.get("job") == _job() else None
    return None


def _weight(data: dict) -> tuple:
    """Findings before none, those with a line before those without, then the earliest step and the lowest rank."""
    step = data["step"] if data["step"] is not None else float("inf")
    return data["verdict"] == "finite", step, data["line"] is None, data["rank"]


class _alone:
    """Holds a lock beside the file."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f".{path.name}.lock")

    def __enter__(self) -> None:
        self._file = self._path.open("w")
        with suppress(ImportError):
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *exc: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)
