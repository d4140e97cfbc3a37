"""Run a notebook from top to bottom and store its outputs, without anything that differs from run to run.

A cell tagged ``unrun`` (one that times something) is not run and is stored empty. A cell tagged ``raises-exception``
may raise. Any other error stops the run and leaves the file as it was.
"""

import re
import subprocess
import time
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from nanlab.authoring import exercises, files
from nanlab.kernels.manager import NotebookKernelManager

LIMIT = 300.0  # seconds for one whole notebook: a lesson that needs more would keep a reader waiting too
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(r"Cell In\s*\[\d+\], line (\d+)")


class StoreError(Exception):
    """A notebook did not run to its end; the message names the file, the cell, the line and the error."""


def store(path: Path, limit: float = LIMIT) -> bool:
    """Run the notebook at `path` in its own folder and store it; True when the file's bytes changed.

    Starts a kernel and ends it. `limit` is in seconds, for the whole notebook. Raises StoreError when a cell fails, the
    limit passes or the kernel dies, ValueError when `path` is no notebook; the file is untouched then.
    """
    notebook = files.read(path)
    files.tidy(notebook)
    run(notebook, path, limit)
    if "solutions" in path.resolve().parts:
        exercises.mark(notebook)
    return files.write(notebook, path)


def run(notebook: NotebookNode, path: Path, limit: float = LIMIT) -> None:
    """Run the cells of `notebook` in place, in the folder of `path`; raises StoreError as `store` does."""
    client = _Client(notebook, path.resolve().parent, limit)
    try:
        client.execute(stderr=subprocess.DEVNULL)  # the kernel's own remarks; what cells print goes another way
    except CellExecutionError as error:
        raise StoreError(f"{path}: {_failure(notebook, error)}") from None
    except CellTimeoutError:
        raise StoreError(f"{path}: {client.where()} was still running after {limit:g} s") from None
    except DeadKernelError:
        raise StoreError(f"{path}: the kernel died in {client.where()}") from None
    for cell in notebook.cells:
        if cell.cell_type == "code":
            _shorten_tracebacks(cell)


class _Client(NotebookClient):
    """Runs each cell that is not tagged ``unrun``, all of them within one limit."""

    def __init__(self, notebook: NotebookNode, folder: Path, limit: float):
        deadline = time.monotonic() + limit
        super().__init__(
            notebook,
            kernel_name="python3",
            kernel_manager_class=NotebookKernelManager,
            timeout_func=lambda _cell: max(1, int(deadline - time.monotonic())),
            startup_timeout=60,
            record_timing=False,
            store_widget_state=False,
            resources={"metadata": {"path": str(folder)}},
        )
        self.at: NotebookNode | None = None

    async def async_execute_cell(self, cell, cell_index, *args, **kwargs):
        if cell.cell_type == "code" and "unrun" in files.tags(cell):
            cell.outputs, cell.execution_count = [], None
            return cell
        self.at = cell
        return await super().async_execute_cell(cell, cell_index, *args, **kwargs)

    def where(self) -> str:
        return f"cell '{self.at.id}'" if self.at is not None else "no cell"


def _failure(notebook: NotebookNode, error: CellExecutionError) -> str:
    """Cell, line and error in one line, from the outputs that `error` left in `notebook`."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error" and output.ename == error.ename and output.evalue == error.evalue:
                lines = _PLACE.findall(_COLOUR.sub("", "\n".join(output.traceback)))
                line = f", line {lines[-1]}" if lines else ""
                allowed = files.tags(cell) & {"raises-exception"}
                if not allowed:
                    return f"cell '{cell.id}'{line}: {error.ename}: {error.evalue}"
    return f"{error.ename}: {error.evalue}"


def _shorten_tracebacks(cell: NotebookNode) -> None:
    """Keep the learner's own frames: the library's carry paths and line numbers that differ between installs."""
    for output in cell.outputs:
        if output.output_type == "error":
            frames = [_COLOUR.sub("", frame) for frame in output.traceback]
            own = [frame for frame in frames[:-1] if frame.startswith("Cell In")]
            output.traceback = [*own, f"{output.ename}: {output.evalue}"]
