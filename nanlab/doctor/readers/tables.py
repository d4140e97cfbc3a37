"""Columns under a heading: CSV files, the tables of YOLO, fastai and evaluators, exports of TensorBoard and W&B."""

import re

from nanlab.doctor.readers.roles import role_of
from nanlab.doctor.readers.values import number_of

_WORD = re.compile(r"[A-Za-z][\w /()\[\].%@+-]{0,60}$")
_KNOWN = re.compile(
    r"^(?:epoch|step|iter(?:ation)?|batch|value|wall time|time|instances|size|images|gpu_mem|class|_step"
    r"|global_step|update|#)$"
)
REACH = 4000  # lines that a heading stays valid for


class Table:
    """The heading last seen and how its columns are parted."""

    def __init__(self) -> None:
        self.columns: list[str] = []
        self.by = ""
        self.line = 0

    def heading(self, line: int, text: str) -> bool:
        """Takes `text` as a heading if it is one: at least three words, no number, and a known name among them."""
        for by in ("|", ",", "\t", ""):
            cells = split(text, by)
            enough = len(cells) >= (2 if by == "," else 3)
            if enough and all(_WORD.match(c) and number_of(c) is None for c in cells) and _knows(cells):
                self.columns, self.by, self.line = _named([c.lower() for c in cells]), by, line
                return True
        return False

    def row(self, line: int, text: str) -> list[tuple[str, str]]:
        """(column, cell) of a row under the heading, or nothing when the line is no such row."""
        if not self.columns or line - self.line > REACH:
            return []
        cells = split(text, self.by)
        enough = len(cells) >= len(self.columns) if self.by == "" else len(cells) == len(self.columns)
        numbers = sum(
            number_of(c.split("/")[0]) is not None or (c == "" and "loss" in name)
            for name, c in zip(self.columns, cells, strict=False)
        )
        if self.by == "" and number_of(cells[0].split("/")[0]) is None if cells else True:
            return []
        if not enough or numbers < max(2, 0.6 * len(self.columns)):
            return []
        return list(zip(self.columns, cells, strict=False))


def _named(columns: list[str]) -> list[str]:
    """YOLOv5 and v7 head the columns of their losses ``box obj cls``."""
    bare = {"box", "obj", "cls"} <= set(columns)
    return [f"{c}_loss" if bare and c in {"box", "obj", "cls", "total"} else c for c in columns]


def split(text: str, by: str) -> list[str]:
    """The cells of a line parted by `by`, or by blanks when that is empty."""
    if by == "":
        return text.split()
    cells = [cell.strip().strip("'\"") for cell in text.strip().strip("|").split(by)]
    return cells if len(cells) > 1 else []


def _knows(cells: list[str]) -> bool:
    low = [cell.lower().strip() for cell in cells]
    known = sum(bool(_KNOWN.match(cell)) for cell in low)
    return (known >= 1 and known + sum(role_of(cell) in {"loss", "metric", "gradient"} for cell in low) >= 2) or (
        sum(role_of(cell) == "metric" for cell in low) >= 3
    )
