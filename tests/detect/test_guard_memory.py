"""The guard keeps nothing alive: no graph, no second copy of the weights, no batch, however long it runs."""

import gc
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn

from nanlab import NonFiniteError, guard

STEPS = 1000


def tensors_alive() -> int:
    gc.collect()
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


def resident() -> int:
    """Bytes of memory that this process occupies."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.fixture
def run():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 1))
    return model, torch.optim.Adam(model.parameters())


def test_a_thousand_steps_leave_no_more_tensors_and_no_more_memory_than_ten(run):
    model, optimizer = run
    counts, sizes = [], []

    def batches():
        for _ in range(STEPS):
            yield torch.randn(32, 64)

    for number, x in enumerate(guard(batches(), model, optimizer)):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        if number in (10, STEPS - 1):
            counts.append(tensors_alive())
            sizes.append(resident())
    assert counts[1] <= counts[0]
    assert sizes[1] - sizes[0] < 8e6  # a kept graph of one step is 0.1 MB, of a thousand 100 MB


def test_neither_batch_nor_loss_outlive_their_step(run):
    model, optimizer = run
    seen = []
    for number, x in enumerate(guard((torch.randn(8, 64) for _ in range(5)), model, optimizer)):
        if number:
            gc.collect()
            assert [ref() for ref in seen[:-2]] == [None] * len(seen[:-2])
        loss = model(x).pow(2).mean()
        seen += [weakref.ref(x), weakref.ref(loss)]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del loss, x


def test_no_second_copy_of_the_weights_is_alive_while_training(run):
    model, optimizer = run
    shapes = [tuple(p.shape) for p in model.parameters()]
    for x in guard([torch.randn(8, 64)] * 3, model, optimizer):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        gc.collect()
        alive = [t for t in gc.get_objects() if issubclass(type(t), torch.Tensor) and tuple(t.shape) == shapes[0]]
        assert len(alive) <= 4  # the weight, its gradient, two moments
        optimizer.step()


def test_after_a_failure_is_handled_nothing_of_it_stays(run):
    model, optimizer = run
    before = tensors_alive()
    for _ in range(3):
        try:
            for x in guard([torch.full((8, 64), float("nan"))], model, optimizer):
                model(x).mean().backward()
                optimizer.step()
        except NonFiniteError:
            pass
    assert tensors_alive() <= before + 4
