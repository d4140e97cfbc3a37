"""What the hunt found, as text with the source line and a caret, as a card in a notebook, and as JSON."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

VERDICTS = ("non-finite", "finite", "not-reproduced", "only-when-compiled")
PLACES = ("input", "target", "forward", "loss", "gradient", "optimizer_state", "weights")
SCHEMA = ("verdict", "step", "where", "op", "file", "line", "module", "form", "element", "suspect", "lesson",
          "confirmed_by")  # fmt: skip


@dataclass
class Report:
    """The outcome of a hunt. Fields that do not apply are None or empty."""

    verdict: str
    step: int | None = None  # 0-based count of optimizer steps
    where: str | None = None
    op: str | None = None
    file: str | None = None
    line: int | None = None
    module: str | None = None
    form: str | None = None
    element: list[int] | None = None
    suspect: str | None = None
    lesson: str | None = None
    confirmed_by: list[str] = field(default_factory=list)
    operands: dict[str, object] = field(default_factory=dict)
    magnitudes: list[tuple[str, float]] = field(default_factory=list)
    node: str | None = None
    shape: list[int] | None = None
    counts: str | None = None
    sink: str | None = None
    trajectory: list = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    target: object = field(default=None, repr=False, compare=False)  # what a confirmation patches; not in the JSON

    def to_json(self) -> dict[str, object]:
        """The report as JSON-safe values; the keys of the schema come first."""
        rest = [name for name in self.__dataclass_fields__ if name not in (*SCHEMA, "target")]
        return {name: _plain(getattr(self, name)) for name in (*SCHEMA, *rest)}

    def source(self) -> str | None:
        """The source line of the origin, stripped; None when it cannot be read."""
        return linecache.getline(self.file, self.line).strip() or None if self.file and self.line else None

    def __str__(self) -> str:
        if self.verdict != "non-finite":
            return "\n".join([self.verdict, *self.notes])
        at = f" at {self.element}" if self.element is not None else ""
        place = f"{Path(self.file).name}:{self.line}" if self.file else "an unknown line"
        lines = [", ".join(p for p in (f"{self.form}{at}", self.module, place) if p)]
        if source := self.source():
            lines += [f"    {source}", f"    {'^' * len(source)}"]
        return "\n".join(lines + self.notes)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class NonFiniteError(ArithmeticError):
    """Raised where training meets a non-finite value. `report` says where it came from; `scene` holds what was
    captured, or None."""

    def __init__(self, report: Report, scene: object = None) -> None:
        super().__init__(str(report))
        self.report = report
        self.scene = scene


def _plain(value: object) -> object:
    from nanlab.detect.values import number

    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if isinstance(value, str) else number(value)
