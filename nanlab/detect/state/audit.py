"""Looks at everything a training run holds: weights, buffers, gradients, optimizer state, an EMA copy, a batch.

A second moment that overflowed is a fault that no loss shows: it freezes its weight for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab.detect.state.nesting import named_leaves
from nanlab.detect.state.training import TrainingState, clean
from nanlab.detect.state.values import count, is_numeric, plain

SENTINELS = {  # numbers that stand for "missing" in data files
    -9999.0: "the usual no-data value of rasters and weather records",
    -999.0: "a no-data value",
    -99999.0: "a no-data value",
    99999.0: "a no-data value",
    1e20: "the fill value of CMIP climate data",
    -1e20: "a fill value",
    1e30: "a fill value",
    9.969209968386869e36: "netCDF's default fill value",
    3.4028234663852886e38: "the largest float32, a common fill value",
    -3.4028234663852886e38: "the lowest float32, the no-data value of many rasters",
    2147483647.0: "the largest 32-bit integer",
    -2147483648.0: "the lowest 32-bit integer",
}
KINDS = {"parameter": "weight", "grad": "gradient", "state": "optimizer state"}
IGNORED = -100  # the target that cross_entropy leaves out by default


@dataclass(frozen=True)
class AuditEntry:
    """One tensor with something to say about it. `kind` is ``"weight"``, ``"buffer"``, ``"gradient"``, ``"optimizer
    state"``, ``"ema"`` or ``"batch"``; `what` says how many values and where the first of them is."""

    kind: str
    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.what}"


@dataclass
class Audit:
    """What `audit` found. True when there are no faults, so that ``assert audit(model)`` holds for a healthy run;
    suspicions do not count. Prints as text and as a table in a notebook."""

    faults: list[AuditEntry] = field(default_factory=list)
    suspicious: list[AuditEntry] = field(default_factory=list)
    looked_at: int = 0

    def __bool__(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        head = f"{self.looked_at} tensors, {len(self.faults)} with faults, {len(self.suspicious)} suspicious"
        rows = [f"  {word:<10}  {f}" for word, f in self._rows()]
        return "\n".join([head, *rows])

    def __repr__(self) -> str:
        return str(self)

    def _rows(self) -> Iterator[tuple[str, AuditEntry]]:
        yield from (("fault", f) for f in self.faults)
        yield from (("suspicious", f) for f in self.suspicious)

    def _repr_html_(self) -> str:
        cells = "".join(
            "<tr>"
            + "".join(f'<td style="text-align:left">{escape(c)}</td>' for c in (word, f.kind, f.name, f.what))
            + "</tr>"
            for word, f in self._rows()
        )
        head = "".join(f'<th scope="col" style="text-align:left">{h}</th>' for h in ("", "Part", "Name", "What"))
        caption = f'<caption style="text-align:left">{escape(str(self).splitlines()[0])}</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table>"


def audit(
    model: nn.Module | None = None,
    optimizer: Optimizer | Sequence[Optimizer] | None = None,
    batch: object = None,
    ema: nn.Module | Mapping[str, Tensor] | None = None,
) -> Audit:
    """Counts what is not finite in the weights, buffers, gradients and optimizer state of a run, in `ema` (a model or a
    dict of tensors) and in `batch` (any nesting). Values that only look like "missing", class ids out of range and
    targets that are all ignored are suspicious, not faults; so are buffers, which may hold an infinity on purpose.

    Changes nothing. Cost: one pass over every tensor, a second one over those of the batch.
    """
    found = Audit()
    kept = ema.state_dict() if isinstance(ema, nn.Module) else ema or {}
    copies = (("ema", clean(name), t) for name, t in kept.items() if isinstance(t, Tensor))
    for kind, name, t in (*TrainingState(model, optimizer).everything(), *copies):
        found.looked_at += 1
        if (counts := count(t)) is not None:
            at = f"{counts}, first at {list(counts.element)}"
            if kind == "state" and "sq" in name and counts.inf:
                at += "; a second moment that overflowed, its weight no longer moves"
            rows = found.suspicious if kind == "buffer" and not counts.nan else found.faults
            rows.append(AuditEntry(KINDS.get(kind, kind), name, at))
    for name, t in named_leaves(batch, "batch"):
        found.looked_at += 1
        _look_at_input(found, name, t, model)
    return found


def _look_at_input(found: Audit, name: str, t: Tensor, model: nn.Module | None) -> None:
    if (counts := count(t)) is not None:
        found.faults.append(AuditEntry("batch", name, f"{counts}, first at {list(counts.element)}"))
    elif t.numel():
        says = _sentinels(t) if is_numeric(t) else _class_ids(t, model)
        found.suspicious += [AuditEntry("batch", name, what) for what in says]


def _sentinels(t: Tensor) -> Iterator[str]:
    """Sentences on values that stand for "missing"."""
    for value, meaning in SENTINELS.items():
        if not t.is_complex() and abs(value) <= torch.finfo(t.dtype).max and (hits := int((plain(t) == value).sum())):
            yield f"{hits} of {t.numel()} are {value:g}, {meaning}"


def _class_ids(t: Tensor, model: nn.Module | None) -> Iterator[str]:
    """Sentences on a 1-D or 2-D integer tensor read as targets of the model's last linear layer."""
    classes = _classes(model)
    if t.dtype not in (torch.int64, torch.int32) or classes is None or t.dim() > 2:
        return
    kept = t[t != IGNORED]
    if kept.numel() == 0:
        yield f"all {t.numel()} are {IGNORED}, the target that cross-entropy ignores: its mean is 0/0"
    elif t.dim() == 1 and (wrong := int(((kept < 0) | (kept >= classes)).sum())):
        yield f"{wrong} of {t.numel()} are not class ids from 0 to {classes - 1}, were they targets of the last layer"


def _classes(model: nn.Module | None) -> int | None:
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)] if model is not None else []
    return layers[-1].out_features if layers else None
