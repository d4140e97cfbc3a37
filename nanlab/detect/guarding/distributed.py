"""Data-parallel runs: on which rank the value began, and which ranks only received it through the all-reduce."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count

import torch
from torch import nn

from nanlab.detect.origin.report import Report

_failures = count()  # numbers them, so that a second one at the same step is not mixed up with the first
PATIENCE = timedelta(seconds=20)  # how long a rank waits to hear from the others; one that did not fail stays silent


def running() -> bool:
    """Whether this process is one of several of a ``torch.distributed`` job."""
    dist = torch.distributed
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


@contextmanager
def alone(model: nn.Module | None) -> Iterator[None]:
    """Keeps ``DistributedDataParallel`` from averaging gradients and sending buffers, so that each rank's replay shows
    what that rank's own data gave."""
    names = ("require_backward_grad_sync", "require_forward_param_sync")
    if not running() or model is None or not all(hasattr(model, name) for name in names):
        yield
        return
    before = [getattr(model, name) for name in names]
    for name in names:
        setattr(model, name, False)
    try:
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(model, name, value)


def compare(report: Report) -> Report:
    """Tells the other ranks what this one's replay found, hears theirs, and notes in `report` where it began. On a rank
    whose own replay was finite the report becomes that of the rank where it began. Unchanged outside a distributed job.

    It speaks through the job's key-value store rather than a collective, which would hang where a rank did not fail.
    """
    if not running():
        return report
    rank, others = torch.distributed.get_rank(), _exchange(report)
    began = sorted(r for r, data in others.items() if data is not None and data["verdict"] == "non-finite")
    silent = sorted(r for r, data in others.items() if data is None)
    if rank not in began and began:
        report = Report.from_data(others[began[0]] or {})
        report.trajectory = []
        report.notes.insert(0, f"Collateral on rank {rank}: its own step is finite; the all-reduce brought it from "
                               f"{_named(began)}.")  # fmt: skip
    elif began:
        rest = [r for r in others if r not in began and r not in silent]
        report.notes.append(f"It began on {_named(began)}" + (f"; collateral on {_named(rest)}." if rest else "."))
    if silent:
        report.notes.append(f"Nothing was heard from {_named(silent)} within {PATIENCE.seconds} s.")
    return report


def _named(ranks: list[int]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))


def _exchange(report: Report) -> dict[int, dict | None]:
    """What each rank found in this step, by rank; None for one that said nothing in time."""
    dist = torch.distributed
    store, rank = dist.distributed_c10d._get_default_store(), dist.get_rank()
    key = f"nanlab/{next(_failures)}/step {report.step}"
    store.set(f"{key}/{rank}", json.dumps(report.to_json()))
    heard: dict[int, dict | None] = {}
    for other in range(dist.get_world_size()):
        try:
            store.wait([f"{key}/{other}"], PATIENCE)
            heard[other] = json.loads(store.get(f"{key}/{other}"))
        except (RuntimeError, torch.distributed.DistStoreError):
            heard[other] = None
    return heard
