"""Data-parallel training on two processes: the report names the rank where it began, the other one is collateral."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nanlab.detect.guarding import distributed
from nanlab.detect.origin.report import Report

WORKER = """
import json, sys
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from nanlab import NonFiniteError, guard

rank, folder, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 3, bias=False))
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(rank)
data = [torch.randn(4, 3) for _ in range(5)]
if rank == 1:
    data[3][2] = 0.0
out = {}
try:
    for x in guard(data, model, optimizer):
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.zero_grad()
        if how == "loss":
            loss = (model(x) / x.norm(dim=1, keepdim=True)).mean()
        else:
            loss = (model(x) * x).pow(2).sum(dim=1).sqrt().mean()
        loss.backward()
        optimizer.step()
except NonFiniteError as error:
    out = {**error.report.to_json(), "same": all(map(torch.equal, before, model.parameters())),
           "sync": model.require_backward_grad_sync}
with open(f"{folder}/{rank}.json", "w") as file:
    json.dump(out, file)
dist.destroy_process_group()
"""


@pytest.mark.parametrize(("how", "form"), [("loss", "x/0"), ("gradient", "deriv_of_sqrt_at_0")])
def test_the_rank_where_it_began_is_named_though_the_all_reduce_spread_it(how, form, tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    jobs = [subprocess.Popen([sys.executable, str(script), str(rank), str(tmp_path), how], env=env) for rank in (0, 1)]
    try:
        assert [job.wait(timeout=100) for job in jobs] == [0, 0]
    finally:
        for job in jobs:
            job.kill()
    healthy, guilty = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert (guilty["step"], guilty["form"]) == (3, form)
    assert any("began on rank 1; collateral on rank 0" in note for note in guilty["notes"])
    assert any(note.startswith("Collateral on rank 0") and "rank 1" in note for note in healthy["notes"])
    assert (healthy["line"], healthy["form"]) == (guilty["line"], form)
    assert healthy["same"] and guilty["same"]
    assert healthy["sync"] and guilty["sync"]


class Store:
    """A key-value store in which some ranks have spoken already."""

    def __init__(self, said: dict[int, Report], step: int) -> None:
        self.held = {f"nanlab/0/step {step}/{rank}": json.dumps(report.to_json()) for rank, report in said.items()}

    def set(self, key, value):
        self.held[key] = value

    def wait(self, keys, timeout):
        if any(key not in self.held for key in keys):
            raise torch.distributed.DistStoreError("timeout")

    def get(self, key):
        return self.held[key].encode()


def compared(monkeypatch, rank: int, mine: Report, others: dict[int, Report], size: int) -> Report:
    dist = torch.distributed
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: size)
    monkeypatch.setattr(dist, "get_rank", lambda: rank)
    monkeypatch.setattr(dist.distributed_c10d, "_get_default_store", lambda: Store(others, mine.step))
    monkeypatch.setattr(distributed, "_failures", iter(range(9)))
    return distributed.compare(mine)


def test_a_rank_that_says_nothing_is_named(monkeypatch):
    report = compared(monkeypatch, 0, Report("non-finite", step=4), {2: Report("not-reproduced", step=4)}, 3)
    assert "It began on rank 0; collateral on rank 2." in report.notes
    assert any("Nothing was heard from rank 1" in note for note in report.notes)


def test_where_every_rank_failed_by_itself_all_are_named(monkeypatch):
    report = compared(monkeypatch, 1, Report("non-finite", step=2), {0: Report("non-finite", step=2)}, 2)
    assert "It began on ranks 0, 1." in report.notes


def test_outside_a_distributed_job_nothing_changes():
    report = Report("non-finite", step=1, notes=["as it was"])
    assert distributed.compare(report) is report
    assert report.notes == ["as it was"]
    with distributed.alone(torch.nn.Linear(1, 1)):
        assert Path(__file__).exists()
