"""The ``%%hunt`` cell magic: runs a cell and marks the line of it that made the first non-finite value.

The line is the one whose value reached the cell's result, or a loss or gradient of a ``backward`` in the cell. Works in
JupyterLab, VS Code and plain IPython; what the cell prints and its result show as always.
"""

from __future__ import annotations

import ast
import linecache
import sys
from dataclasses import dataclass
from html import escape

from torch import Tensor

from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.report import Report
from nanlab.detect.replay.step import eager, gradients
from nanlab.detect.state.nesting import named_leaves
from nanlab.detect.state.printable import printable
from nanlab.detect.state.training import leaves_of
from nanlab.detect.state.values import is_finite
from nanlab.detect.trace.quiet import aside
from nanlab.detect.trace.tracer import Tracer

CLEAN = "hunt: nothing non-finite reached the cell's result or a backward."
WRITTEN = ("inf written",)  # a mask that the cell shows is no finding
SHOWN = 3  # lines of the cell around the marked one


def register(shell) -> None:
    """Brings ``%%hunt`` to an IPython shell."""
    shell.register_magic_function(lambda line, cell: run(shell, cell), "cell", "hunt")


def run(shell, cell: str) -> None:
    """Runs `cell` under the hunt in the shell's namespace, shows its result, then what was found. What the cell raises
    passes through, after the finding."""
    from IPython.display import display

    name = f"<cell>{shell.execution_count}"
    source = "%%hunt\n" + cell  # lines count as the editor shows them
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    hunter = CellHunt()
    try:
        with eager(), hunter.tracer:
            result = execute(shell, cell, name)
            hunter.look_at_end(result)
    finally:
        if hunter.report is not None:
            display(CellFinding(hunter.report, source, name))
    if hunter.report is None:
        print(CLEAN)


def execute(shell, cell: str, name: str) -> object:
    """Runs the statements of `cell`; a last expression is shown as IPython would, and returned."""
    tree = ast.parse(shell.transform_cell(cell), name)
    ast.increment_lineno(tree, 1)  # for the line of the magic itself
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), shell.user_ns)
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), name, "eval"), shell.user_ns)
    if not shell.transform_cell(cell).rstrip().endswith(";"):
        with aside():
            sys.displayhook(value)
    return value


class CellHunt:
    """A tracer, and the first report that it gives rise to."""

    def __init__(self) -> None:
        self.tracer = Tracer()
        self.report: Report | None = None
        self.tracer.on_backward = lambda losses: self.look("loss", losses)
        self.tracer.on_optimizer = lambda optimizer: self.look("gradient", gradients(self.tracer))

    def look(self, sink: str, tensors: list[Tensor]) -> None:
        """Reports on the first of `tensors` that are not finite, and stops recording."""
        if self.report is not None:
            return
        with aside():
            bad = [t for t in tensors if not is_finite(t)]
            if bad:
                self.report = explain(self.tracer, sink, bad, step=self.tracer.program.step)
                self.tracer.muted = True

    def look_at_end(self, result: object) -> None:
        """Gradients that no optimizer has looked at, weights after the last step, then the cell's result."""
        leaves = [t.grad for t in leaves_of(self.tracer.losses) if t.grad is not None]
        self.look("gradient", gradients(self.tracer) + leaves)
        self.look("weights", [t for kind, _, t in self.tracer.sources.everything() if kind == "parameter"])
        if self.report is None:
            self.look("result", [t for _, t in named_leaves(result, "result")])
            if self.report is not None and self.report.where == "loss":
                self.report.where = "forward"  # there is no loss in sight
            if self.report is not None and self.report.form in WRITTEN:
                self.report = None
        if self.report is None and isinstance(result, float) and result - result != 0 and self.tracer.last_scalar:
            with aside():
                self.report = explain(self.tracer, "result", [self.tracer.last_scalar], step=self.tracer.program.step)


@dataclass
class CellFinding:
    """A report with the cell around it; the line at fault is marked when it lies in the cell."""

    report: Report
    source: str
    name: str

    def listing(self) -> list[tuple[int, str, bool]]:
        """The lines near the marked one, with their numbers."""
        if (at := self.line()) is None:
            return []
        return [(n, text, n == at) for n, text in enumerate(self.source.splitlines(), 1) if abs(n - at) <= SHOWN]

    def line(self) -> int | None:
        """The line of the cell that made the value, or that called what made it."""
        trail = [(self.report.file, self.report.line), *self.report.trail]
        return next((line for file, line in trail if file == self.name), None)

    def __repr__(self) -> str:
        rows = []
        for n, text, marked in self.listing():
            rows.append(f"{'→' if marked else ' '} {n:>3}  {text}")
            if marked and self.report.file == self.name and (shown := self.report.source()):
                rows.append(" " * (7 + len(text) - len(text.lstrip())) + shown[1])
        return printable("\n".join([*rows, self.report.text(source=self.report.file != self.name)]))

    def _repr_html_(self) -> str:
        rows = []
        for n, text, marked in self.listing():
            line = f"{n:>3}  {escape(text)}"
            rows.append(f'<mark aria-label="the line at fault">→{line}</mark>' if marked else f" {line}")
        listing = f'<pre tabindex="0" aria-label="the cell">{chr(10).join(rows)}</pre>' if rows else ""
        return printable(listing) + self.report._repr_html_()
