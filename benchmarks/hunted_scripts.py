"""Does ``nanlab hunt SCRIPT`` find the line in whole scripts? A table over a folder of labelled ones.

    python benchmarks/hunted_scripts.py FOLDER [--json OUT] [ID ...]

FOLDER holds scripts and a ``labels.jsonl``: for each its ``file``, whether it is ``healthy``, else the ``line`` and the
``step`` of its first non-finite value (``also_lines`` and ``also_steps`` count as well), ``where``, ``form`` and the
``suspects`` whose fix would cure it; optionally ``args`` and ``env``. Scripts run in forks of this process, which has
torch loaded already, each in a folder of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from scoreboard import family, run

from nanlab.cli import main as nanlab
from nanlab.detect.scripts import scripthunt  # noqa: F401 (loaded before the forks)

LONGEST = 120.0  # seconds for one script


@dataclass
class Row:
    """One script's results; None where there was nothing to get right."""

    id: str
    file: str
    line: bool | None
    step: bool | None
    where: bool | None
    form: bool | None
    suspect: bool | None
    alarm: bool
    said: str
    seconds: float


def score(label: dict, folder: Path) -> Row:
    """Hunts one script and compares the report with its label."""
    began = time.monotonic()
    report = hunted(folder / label["file"], label.get("args", []), label.get("env", {}))
    took = round(time.monotonic() - began, 1)
    found = report["verdict"] not in ("finite", "no report")
    said = f"{report['form']} at line {report['line']} ({report['where']}, step {report['step']}, {report['suspect']})"
    said = said if found else report["verdict"]
    if label["healthy"]:
        return Row(label["id"], label["file"], *[None] * 5, found or report["verdict"] == "no report", said, took)
    right = (
        report["line"] in [label["line"], *label.get("also_lines", [])],
        report["step"] in [label["step"], *label.get("also_steps", [])],
        report["where"] == label["where"],
        family(report["form"]) == family(label["form"]),
        report["suspect"] in label["suspects"],
    )
    return Row(label["id"], label["file"], *(found and one for one in right), False, said, took)


def hunted(path: Path, args: list[str], env: dict[str, str]) -> dict:
    """The report of ``nanlab hunt`` on the script at `path`; verdict ``"no report"`` where it wrote none in time."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        pid = os.fork()
        if pid == 0:
            os.setsid()
            _hunt(path.resolve(), args, env, out, Path(folder))
        end = time.monotonic() + LONGEST
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.killpg(pid, signal.SIGKILL)
            time.sleep(0.02)
        empty = dict.fromkeys(("line", "step", "where", "form", "suspect"))
        return json.loads(out.read_text()) if out.exists() else {**empty, "verdict": "no report"}


def _hunt(path: Path, args: list[str], env: dict[str, str], out: Path, folder: Path) -> None:
    """In the fork: hunts, and leaves."""
    os.environ.update(env)
    os.chdir(folder)
    for stream, name in ((1, "out.txt"), (2, "err.txt")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), stream)
    status = 99
    try:
        status = nanlab(["hunt", "--json", str(out), str(path), *args])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def show(rows: list[Row]) -> None:
    """Prints the rows that are not all right, and the totals."""
    for row in rows:
        wrong = [name for name in ("line", "step", "where", "form", "suspect") if getattr(row, name) is False]
        if wrong or row.alarm:
            print(f"{row.id} {row.file}: {'FALSE ALARM' if row.alarm else ', '.join(wrong)}; said {row.said}")
    bad = [row for row in rows if row.line is not None]
    counts = (f"{name} {sum(getattr(row, name) is True for row in bad)}" for name in list(asdict(bad[0]))[2:7])
    print(f"{len(bad)} scripts that fail: " + ", ".join(counts))
    print(f"{len(rows) - len(bad)} healthy ones: {sum(row.alarm for row in rows)} false alarms")


def main(argv: list[str] | None = None) -> int:
    return run(__doc__, score, show, argv)


if __name__ == "__main__":
    sys.exit(main())
