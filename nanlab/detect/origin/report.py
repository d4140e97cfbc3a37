"""What the hunt found, as text with the source line and a caret, as a card in a notebook, and as JSON."""

from __future__ import annotations

import linecache
import math
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from textwrap import fill
from typing import Any

from nanlab import suspects
from nanlab.detect.state.printable import printable
from nanlab.detect.trace.labels import Place, installed, place_name

VERDICTS = ("non-finite", "finite", "not-reproduced", "only-when-compiled")
PLACES = ("input", "target", "forward", "loss", "gradient", "optimizer_state", "weights")
SCHEMA = ("verdict", "step", "where", "op", "file", "line", "module", "form", "element", "suspect", "lesson",
          "confirmed_by")  # fmt: skip
SAYS = {
    "finite": "Nothing non-finite reached the loss, the gradients or the weights.",
    "not-reproduced": "The replay was finite: the failure was not reproduced.",
    "only-when-compiled": "Only when compiled: the same step is finite when it runs eagerly.",
}
WIDTH = 96


@dataclass(frozen=True)
class Target:
    """What a confirmation mends: every call of the function `call` (or run of the operation `op`) on one line of the
    program."""

    place: Place
    call: str | None
    op: str

    def to_data(self) -> dict[str, Any]:
        """The target as plain data, for another process of this program."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Target:
        return cls(**{**data, "place": Place(**data["place"])})


@dataclass
class Report:
    """The outcome of a hunt. Fields that do not apply are None or empty.

    `step` is the 0-based count of optimizer steps; `element` the index of the first bad value in the result of shape
    `shape`; `operands` what the operation had there; `magnitudes` pairs of a line and the largest value it made, the
    latest last; `sink` where the value was seen; `trajectory` the last steps of the run; `columns` where in the line
    the operation stands; `trail` the file and line of each call that led there, the nearest first.
    """

    verdict: str
    step: int | None = None
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
    columns: tuple[int, int] | None = None
    trail: list[tuple[str, int]] = field(default_factory=list)
    trajectory: list = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    target: Target | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The report as values that JSON can hold (a non-finite float becomes a string); the schema's keys come first.
        The target is left out."""
        rest = [name for name in self.__dataclass_fields__ if name not in (*SCHEMA, "target")]
        return {name: _plain(getattr(self, name)) for name in (*SCHEMA, *rest)}

    def to_data(self) -> dict[str, Any]:
        """`to_json` with the target, for another process of this program."""
        return {**self.to_json(), "target": self.target and self.target.to_data()}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Report:
        """The report that `to_data` or `to_json` was called on; keys that no report has are passed over."""
        report = cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})
        if (target := data.get("target")) is not None:
            report.target = Target.from_data(target)
        return report

    def place(self) -> str:
        """``model.py:41``, ``cell, line 3`` in a notebook, or ``an unknown line``."""
        return place_name(self.file, self.line) if self.file and self.line is not None else "an unknown line"

    def headline(self) -> str:
        """The finding on one line: ``0/0 at [2, 0], encoder.norm, model.py:41``."""
        if self.verdict != "non-finite":
            return SAYS[self.verdict]
        at = f" at {self.element}" if self.element else ""
        parts = (f"{self.form or self.op or 'non-finite'}{at}", self.module, self.place())
        return ", ".join(part for part in parts if part)

    def source(self) -> tuple[str, str] | None:
        """The source line of the origin, without its indentation, and a line of carets under the operation; None when
        the line cannot be read."""
        raw = linecache.getline(self.file, self.line).rstrip() if self.file and self.line else ""
        text = raw.lstrip()
        if not text:
            return None
        start, stop = self.columns or (0, 0)
        indent = len(raw) - len(text)
        before, under = (len(raw.encode()[:n].decode(errors="ignore")) - indent for n in (start, stop))
        if not 0 <= before < under <= len(text):
            before, under = 0, len(text)
        return text, " " * before + "^" * (under - before)

    def facts(self) -> list[tuple[str, str]]:
        """The evidence as pairs of a short label and a sentence or list, in the order in which it is shown."""
        if self.verdict != "non-finite":
            return [("", note) for note in self.notes]
        rows: list[tuple[str, str | None]] = [("what", self._what()), ("", self._operands())]
        if self.trail and (installed(self.file or "") or "backward" in (self.op or "")):
            rows.append(("called", f"from {place_name(*self.trail[0])}"))
        rows += [("", note) for note in self.notes]
        rows.append(("before it", "; ".join(f"{line} up to {_short(size)}" for line, size in self.magnitudes)))
        if self.confirmed_by:
            rows.append(("confirmed", "the step is finite with: " + ", ".join(self.confirmed_by)))
        if self.suspect:
            row = suspects.get(self.suspect)
            rows += [("suspect", f"{row.title}. {row.cause}"), ("fix", row.fix), ("lesson", self.lesson or row.lesson)]
        return [(name, text) for name, text in rows if text]

    def _what(self) -> str:
        made = f": {self.counts}" if self.counts else ""
        shape = f", shape {self.shape}" if self.shape is not None else ""
        where = (self.where or "").replace("_", " ")
        return f"step {self.step}, {where}, {self.op}{made}{shape}" if self.op else f"step {self.step}, {where}"

    def _operands(self) -> str:
        return "with " + ", ".join(f"{k} = {_short(v)}" for k, v in self.operands.items()) if self.operands else ""

    def __str__(self) -> str:
        return self.text()

    def text(self, source: bool = True) -> str:
        """The report as lines of at most 96 columns, with the source line unless told otherwise."""
        lines = [self.headline()]
        if source and self.verdict == "non-finite" and (shown := self.source()):
            lines += [f"    {part}" for part in shown]
        for name, text in self.facts():
            lead = f"  {name:<10}"
            lines.append(fill(text, WIDTH, initial_indent=lead, subsequent_indent=" " * 12, break_on_hyphens=False))
        return printable("\n".join(lines))

    def _repr_html_(self) -> str:
        from jinja2 import Environment

        template = files("nanlab.detect.origin").joinpath("card.html.jinja").read_text("utf-8")
        card = Environment(autoescape=True, trim_blocks=True).from_string(template)
        return printable(card.render(report=self, source=self.source()))


class NonFiniteError(ArithmeticError):
    """Raised where training meets a non-finite value. `report` says where it came from; `scene` holds what was
    captured, or None."""

    def __init__(self, report: Report, scene: object = None) -> None:
        super().__init__(str(report))
        self.report = report
        self.scene = scene


def _short(value: object) -> str:
    """A number with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
