"""Which tool names the line of a program's first non-finite value? A table over a folder of labelled programs.

    python benchmarks/scoreboard.py FOLDER [--json OUT] [ID ...]

FOLDER holds programs with ``build() -> (model, optimizer, batches)``, ``loss_fn(model, batch)`` and a plain loop under
``if __name__ == "__main__"``, and a ``labels.jsonl`` that says what goes wrong in each. The loop's own lines are run,
so that an optimizer's line counts too. For every program: whether nanlab's hunt has the step, the line, the part of the
step, the form and a confirmation right; whether anomaly mode and a plain per-operation check name the line; false
alarms on the programs in which nothing is wrong.

Forms are compared by family: what stands in brackets or behind a semicolon is a note, and nothing else is equated but
the spellings in `SAME`.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from nanlab.detect.replay.hunt import hunt

SAME = {"1/0": "x/0", "inf_in": "nan_in", "exp overflow": "overflow"}  # spellings of one form
HEADINGS = ("program", "step", "line", "where", "form", "confirmed", "anomaly mode", "per-op check", "nanlab said")
SILENT, EXACT, WRONG, ALARM = "silent", "exact", "wrong line", "false alarm"


@dataclass
class Program:
    """A labelled program, and its training step as a function of nothing but its loop's own lines."""

    label: dict
    path: Path

    def steps(self) -> list[tuple[dict, Callable[[], None]]]:
        """For every batch, the loop's variables and a function that runs the loop's body once."""
        tree = ast.parse(self.path.read_text("utf-8"), str(self.path))
        module = types.ModuleType(f"program_{self.label['id']}")
        main = next(node for node in tree.body if isinstance(node, ast.If))
        exec(compile(self.path.read_text("utf-8"), str(self.path), "exec"), module.__dict__)
        model, optimizer, batches = module.build()
        loop = next(node for node in main.body if isinstance(node, ast.For))
        body = [node for node in loop.body if not (isinstance(node, ast.Expr) and _prints(node.value))]
        code = compile(ast.Module(body, []), str(self.path), "exec")
        made = []
        for step, batch in enumerate(batches):
            names = {**module.__dict__, "model": model, "optimizer": optimizer, "batch": batch, "step": step}
            made.append((names, lambda names=names: exec(code, names)))
        return made


def _prints(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"


@dataclass
class Row:
    """One program's results; None where there was nothing to get right."""

    id: str
    step: bool | None
    line: str
    where: bool | None
    form: bool | None
    confirmed: bool | None
    anomaly: str
    per_op: str
    said: str


def family(form: str | None) -> str:
    """The form without notes, in one spelling."""
    bare = re.sub(r"\s*[(;].*", "", form or "") if not re.match(r"\w+\(", form or "") else (form or "").split(";")[0]
    bare = re.sub(r" \(.*", "", bare).strip()
    return SAME.get(bare, bare)


def score(program: Program) -> Row:
    """The results of the three tools on one program."""
    label, report = program.label, hunted(program)
    anomaly = verdict(label, *with_anomaly_mode(program))
    per_op = verdict(label, *with_per_op_check(program))
    if label["first_bad_step"] is None:
        return Row(label["id"], None, ALARM if report else SILENT, None, None, None, anomaly, per_op, "")
    if report is None:
        return Row(label["id"], False, SILENT, False, False, False, anomaly, per_op, "")
    said = f"{report.form} at line {report.line} ({report.where}, step {report.step})"
    return Row(
        label["id"], report.step == label["first_bad_step"],
        EXACT if report.line == label["first_bad_line"] else WRONG,
        report.where == label["first_bad_where"], family(report.form) == family(label["indeterminate_form"]),
        bool(report.confirmed_by), anomaly, per_op, said,
    )  # fmt: skip


def hunted(program: Program):
    """The hunt's report on the first step that it finds non-finite, confirmed; None when it finds none."""
    for names, step_fn in program.steps():
        report = hunt(step_fn, names["model"], names["optimizer"], names["batch"], step=names["step"], confirm=True)
        if report.verdict != "finite":
            return report
    return None


def verdict(label: dict, step: int | None, line: int | None) -> str:
    """What naming `line` at `step` (both None for silence) is worth."""
    if step is None:
        return SILENT
    if label["first_bad_step"] is None:
        return ALARM
    return EXACT if line == label["first_bad_line"] and step <= (label["visible_step"] or step) else WRONG


def with_anomaly_mode(program: Program) -> tuple[int | None, int | None]:
    """The step at which ``torch.autograd.detect_anomaly`` raises, and the forward line that it shows."""
    for names, step_fn in program.steps():
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            try:
                with torch.autograd.detect_anomaly(check_nan=True):
                    step_fn()
            except RuntimeError:
                text = " ".join(str(w.message) for w in shown)
                lines = re.findall(rf'File "{re.escape(str(program.path))}", line (\d+)', text)
                return names["step"], int(lines[-1]) if lines else None
    return None, None


class Raise(Exception):
    """The per-operation check's find."""


class PerOp(TorchDispatchMode):
    """The plain check: every result of every operation, NaN and infinity alike, no matter what becomes of it."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for t in torch.utils._pytree.tree_leaves(result):
            if isinstance(t, torch.Tensor) and t.is_floating_point() and not bool(torch.isfinite(t).all()):
                raise Raise
        return result


class LastLine(TorchFunctionMode):
    """Remembers the line of the program that last called a torch function."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.line = str(path), None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.path:
            frame = frame.f_back
        self.line = frame.f_lineno if frame is not None else self.line
        return func(*args, **(kwargs or {}))


def with_per_op_check(program: Program) -> tuple[int | None, int | None]:
    """The step and the line at which some operation's result is first non-finite."""
    for names, step_fn in program.steps():
        with LastLine(program.path) as last, PerOp():
            try:
                step_fn()
            except Raise:
                return names["step"], last.line
    return None, None


def show(rows: list[Row]) -> None:
    """Prints the table and its totals."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Who names the line?")
    for heading in HEADINGS:
        table.add_column(heading, no_wrap=heading != "nanlab said")
    mark = {True: "yes", False: "NO", None: ""}
    for r in rows:
        marks = mark[r.where], mark[r.form], mark[r.confirmed]
        table.add_row(r.id, mark[r.step], r.line, *marks, r.anomaly, r.per_op, r.said)
    console = Console(width=150)
    console.print(table)
    failing = [r for r in rows if r.step is not None]
    clean = len(rows) - len(failing)
    right = {name: sum(getattr(r, name) is True for r in failing) for name in ("step", "where", "form", "confirmed")}
    console.print(f"{len(failing)} programs that fail: " + ", ".join(f"{k} {v}" for k, v in right.items()))
    for tool, field in (("nanlab", "line"), ("anomaly mode", "anomaly"), ("per-op check", "per_op")):
        got = [getattr(r, field) for r in rows]
        silent = sum(getattr(r, field) == SILENT for r in failing)
        counts = ", ".join(f"{got.count(v)} {v}" for v in (EXACT, WRONG))
        console.print(f"{tool}: {counts}, {silent} silent; {got.count(ALARM)} false alarms on {clean} clean programs")


def run(about: str, score: Callable, show: Callable, argv: list[str] | None = None) -> int:
    """Score every labelled program of a folder, as the command line says, show the rows and write them where asked."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("ids", nargs="*", help="only these programs")
    parser.add_argument("--json", type=Path, help="write the rows here too")
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    lines = (given.folder / "labels.jsonl").read_text("utf-8").splitlines()
    labels = [label for label in map(json.loads, lines) if not given.ids or label["id"] in given.ids]
    rows = [score(label, given.folder) for label in labels]
    show(rows)
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", "utf-8")
    return 0


def main(argv: list[str] | None = None) -> int:
    return run(__doc__, lambda label, folder: score(Program(label, folder / label["file"])), show, argv)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the programs' own
    sys.exit(main())
