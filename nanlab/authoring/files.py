"""Read and write notebooks in one form, so that storing the same notebook twice gives the same bytes."""

import os
import re
from itertools import pairwise
from pathlib import Path

import nbformat
from nbformat import NotebookNode

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"}
KEPT_METADATA = {"tags", "nbgrader", "jupyter", "editable", "deletable"}  # the rest is an editor's or a run's trace
_ASKS = re.compile(r"\b(?:predict|checkpoint)\(")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def find(root: Path, *rooms: str) -> list[Path]:
    """The notebooks in the folders `rooms` of the repository at `root`, in order, an editor's own copies left out."""
    found = [path for room in rooms for path in (root / room).rglob("*.ipynb")]
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(root).parts))


def has_code(path: Path) -> bool:
    """Whether the notebook at `path` has anything to run."""
    return any(cell.cell_type == "code" for cell in read(path).cells)


def read(path: Path) -> NotebookNode:
    """The notebook at `path`, as version 4.5 (which has cell ids). Raises ValueError when it is no notebook."""
    try:
        return nbformat.read(path, as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a notebook ({str(error).splitlines()[0]})") from error


def write(notebook: NotebookNode, path: Path) -> bool:
    """Write `notebook` to `path` in one step; True when the file's bytes changed."""
    text = text_of(notebook)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}.part")  # beside the target: a rename across disks is a copy
    try:
        half.write_text(text, encoding="utf-8", newline="\n")
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
    return True


def text_of(notebook: NotebookNode) -> str:
    """The text that `write` would write. Tidies `notebook` in place; raises ValueError when it is not valid."""
    tidy(notebook)
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        raise ValueError(f"not a valid notebook: {str(error).splitlines()[0]}") from error
    return nbformat.writes(notebook, version=4).rstrip("\n") + "\n"


def tidy(notebook: NotebookNode) -> None:
    """Bring the metadata of `notebook` and of its cells to the one form that is stored, in place."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": LANGUAGE})
    for cell in notebook.cells:
        for key in set(cell.metadata) - KEPT_METADATA:
            del cell.metadata[key]
        if cell.metadata.get("tags") == []:
            del cell.metadata["tags"]
        if cell.cell_type == "code":
            cell.outputs = _tidy_outputs(cell.outputs, cell.execution_count)
    for cell in reveals(notebook):
        cell.metadata.jupyter = {**cell.metadata.get("jupyter", {}), "outputs_hidden": True}


def asks(cell: NotebookNode) -> bool:
    """Whether `cell` asks for a prediction."""
    return cell.cell_type == "code" and _ASKS.search(cell.source) is not None


def reveals(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that answer a prediction: the first code after it, whatever text stands between. What they store
    is kept hidden until they are run."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [after for cell, after in pairwise(code) if asks(cell) and not asks(after)]


def _tidy_outputs(outputs: list[NotebookNode], count: int | None) -> list[NotebookNode]:
    tidied: list[NotebookNode] = []
    for output in outputs:
        if "data" in output:
            output.data.pop(WIDGET_VIEW, None)
            if not output.data:
                continue
        if output.output_type == "execute_result":
            output.execution_count = count
        if output.output_type == "stream" and tidied and tidied[-1].get("name") == output.name:
            tidied[-1].text += output.text  # how a stream was cut into messages is chance
            continue
        tidied.append(output)
    return tidied


def tags(cell: NotebookNode) -> set[str]:
    """The tags of `cell`."""
    return set(cell.metadata.get("tags", ()))
