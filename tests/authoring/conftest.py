"""Small notebooks to try the tools on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode, v4

from nanlab.authoring import files
from nanlab.kernels import provisioner


def text(id_: str, source: str) -> NotebookNode:
    return v4.new_markdown_cell(source, id=id_)


def code(id_: str, source: str, *tags: str, **more) -> NotebookNode:
    return v4.new_code_cell(source, id=id_, metadata={"tags": list(tags)} if tags else {}, **more)


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Path]:
    """Writes a notebook of the given cells and says where."""

    def write(*cells: NotebookNode, at: str = "page.ipynb") -> Path:
        path = tmp_path / at
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(v4.new_notebook(cells=list(cells)), path)
        return path

    write.text, write.code = text, code
    return write


@pytest.fixture(scope="session", autouse=True)
def _end_warm_processes() -> Iterator[None]:
    yield
    provisioner._close()
