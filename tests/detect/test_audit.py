"""The audit finds every fault a run can hold, and tells what is only suspicious apart."""

import pytest
import torch
from torch import nn

from nanlab import audit


@pytest.fixture
def run():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 5))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(6, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def names(findings) -> list[str]:
    return [f"{f.kind} {f.name}" for f in findings]


def test_a_healthy_run_is_true_and_has_nothing_to_say(run):
    found = audit(*run, batch=(torch.randn(6, 3), torch.randint(0, 5, (6,))), ema=run[0])
    assert found
    assert (found.faults, found.suspicious) == ([], [])
    assert str(found).endswith("0 with faults, 0 suspicious")
    assert found.looked_at > 30


def test_a_fault_in_every_part_is_named_with_its_first_element(run):
    model, optimizer = run
    bad = float("nan")
    with torch.no_grad():
        model[0].weight[1, 2] = bad
        model[1].running_mean[3] = bad
        model[2].bias.grad[0] = bad
        optimizer.state[model[2].weight]["exp_avg_sq"][0, 1] = float("inf")
    ema = {"module.0.weight": torch.full((4, 3), bad)}
    found = audit(model, optimizer, batch={"x": torch.tensor([1.0, bad])}, ema=ema)
    assert not found
    assert names(found.faults) == [
        "weight 0.weight", "gradient 2.bias", "buffer 1.running_mean", "optimizer state exp_avg_sq of 2.weight",
        "ema 0.weight", "batch batch['x']",
    ]  # fmt: skip
    assert found.faults[0].what == "1 nan of 12, first at [1, 2]"
    assert "no longer moves" in found.faults[3].what


def test_an_infinity_in_a_buffer_is_suspicious_and_no_fault(run):
    run[0].register_buffer("mask", torch.tensor([0.0, float("-inf")]))
    found = audit(*run)
    assert found
    assert names(found.suspicious) == ["buffer mask"]


@pytest.mark.parametrize(
    ("value", "word"),
    [(-9999.0, "no-data"), (1e20, "CMIP"), (9.969209968386869e36, "netCDF"), (3.4028234663852886e38, "float32")],
)
def test_values_that_stand_for_missing_are_suspicious(value, word):
    found = audit(batch=[torch.tensor([1.0, value, 2.0])])
    assert found
    assert word in found.suspicious[0].what
    assert found.suspicious[0].what.startswith("1 of 3")


def test_half_precision_batches_can_be_looked_at():
    assert audit(batch=torch.ones(3, dtype=torch.float16)).suspicious == []


def test_class_ids_outside_the_last_layer_and_targets_that_are_all_ignored_are_suspicious(run):
    found = audit(*run, batch=torch.tensor([0, 4, 5, -1, -100]))
    assert "2 of 5 are not class ids from 0 to 4" in found.suspicious[0].what
    found = audit(*run, batch=torch.full((4,), -100))
    assert "its mean is 0/0" in found.suspicious[0].what


def test_it_prints_as_a_table_and_escapes_what_it_names():
    found = audit(batch={"<x>": torch.tensor(float("inf"))})
    assert "&lt;x&gt;" in found._repr_html_()
    assert "fault" in str(found)


def test_a_model_alone_an_optimizer_alone_and_lbfgs_can_be_audited():
    assert audit(nn.Linear(2, 2))
    model = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = (model(torch.ones(1, 2)) - 3).pow(2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert audit(None, optimizer)
    optimizer.state[model.weight]["old_dirs"][0][0] = float("nan")
    assert names(audit(None, optimizer).faults) == ["optimizer state old_dirs[0] of parameter 0"]
