"""Run a notebook from top to bottom and store its outputs, without anything that differs from run to run.

It is run again with results moved by a unit in the last place (`shaken`), as another processor would have them: outputs
that differ then are not stored.

A cell tagged ``unrun`` (one that times something) is not run and is stored empty. A cell tagged ``raises-exception``
may raise. Any other error stops the run and leaves the file as it was.
"""

import copy
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from nanlab.authoring import exercises, files, shaken
from nanlab.authoring.edges import edges
from nanlab.kernels.manager import NotebookKernelManager

LIMIT = 300.0  # seconds for one whole notebook: a lesson that needs more would keep a reader waiting too
SEEDS = 3  # shaken runs: enough for most edges; the tests run one seed, and ten by hand (``pytest --shaken 10``)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(r"Cell In\s*\[\d+\], line (\d+)")


class StoreError(Exception):
    """A notebook did not run to its end, or its outputs would differ on other processors.

    The message names the file, the cell, and the line and the error or the number and the digits that survive.
    """


def store(path: Path, limit: float = LIMIT, seeds: int = SEEDS) -> bool:
    """Run the notebook at `path` in its own folder and store it; True when the file's bytes changed.

    Starts a kernel and ends it, once plainly and once for each of `seeds` shaken runs. `limit` is in seconds, for one
    run of the whole notebook. Raises StoreError when a cell fails, the limit passes, the kernel dies or outputs differ
    between the runs, ValueError when `path` is no notebook; the file is untouched then.
    """
    notebook = files.read(path)
    files.tidy(notebook)
    run(notebook, path, limit)
    _hold_under_shaking(notebook, path, limit, seeds)
    if "solutions" in path.resolve().parts:
        exercises.mark(notebook)
    return files.write(notebook, path)


def _hold_under_shaking(notebook: NotebookNode, path: Path, limit: float, seeds: int) -> None:
    """Raise StoreError when the outputs of `notebook`, which was run plainly, differ in one of the shaken runs."""
    runs = [copy.deepcopy(notebook) for _ in range(seeds)]
    for seed, shaken_run in enumerate(runs):
        try:
            run(shaken_run, path, limit, shaken.arguments(seed))
        except StoreError as error:
            raise StoreError(f"{error}\n  (results moved in the last place; the plain run passed)") from None
    found = edges(notebook, runs)
    if found:
        head = f"{path}: not stored, since other processors would print something else; print fewer digits, or words"
        raise StoreError("\n  ".join([head, *found]))


def run(notebook: NotebookNode, path: Path, limit: float = LIMIT, arguments: Sequence[str] = ()) -> None:
    """Run the cells of `notebook` in place, in the folder of `path`, by a kernel that is started with `arguments`.

    Raises StoreError as `store` does, except for outputs that differ.
    """
    client = _Client(notebook, path.resolve().parent, limit, arguments)
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

    def __init__(self, notebook: NotebookNode, folder: Path, limit: float, arguments: Sequence[str] = ()):
        deadline = time.monotonic() + limit
        super().__init__(
            notebook,
            kernel_name="python3",
            kernel_manager_class=NotebookKernelManager,
            timeout_func=lambda _cell: max(1, int(deadline - time.monotonic())),
            startup_timeout=60,
            record_timing=False,
            store_widget_state=False,
            extra_arguments=list(arguments),
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
