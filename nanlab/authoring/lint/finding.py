"""What a rule looks at and what it says."""

from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from nanlab import course

GENERATED = ("links", "links-end")
_KINDS = {"notebooks": "lesson", "solutions": "solution", "exercises": "exercise"}


@dataclass(frozen=True)
class Finding:
    """One thing that a rule has to say about a cell, or about the whole notebook when `cell` is empty."""

    path: Path
    cell: str
    text: str
    note: bool = False  # advice; an error otherwise

    def __str__(self) -> str:
        place = f"{self.path}: {self.cell}" if self.cell else str(self.path)
        return f"{place}: {'note: ' if self.note else ''}{self.text}"


@dataclass
class Page:
    """A notebook and what kind of page it is."""

    path: Path
    notebook: NotebookNode
    kind: str = field(init=False)  # "start", "lesson", "solution", "exercise" or "other"

    def __post_init__(self) -> None:
        room, track = self.path.resolve().parent.parts[-2:]
        self.kind = "other"
        if self.path.stem == course.START.name:
            self.kind = "start"
        elif track in course.TRACKS:
            self.kind = _KINDS.get(room, "other")

    @property
    def code(self) -> list[NotebookNode]:
        return [cell for cell in self.notebook.cells if cell.cell_type == "code"]

    @property
    def text(self) -> list[NotebookNode]:
        """The Markdown cells that somebody wrote."""
        return [c for c in self.notebook.cells if c.cell_type == "markdown" and c.id not in GENERATED]

    def says(self, cell: NotebookNode | None, text: str, *, note: bool = False) -> Finding:
        return Finding(self.path, cell.id if cell is not None else "", text, note)
