"""Shaken results differ by at most one unit in the last place, the same way for the same seed, and nobody notices."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nanlab.authoring import shaken
from nanlab.authoring.shaken import Shaken

BITS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}


def apart(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """How many units in the last place lie between two tensors of the same signs."""
    return a.contiguous().view(BITS[a.dtype]).long() - b.contiguous().view(BITS[b.dtype]).long()


@pytest.mark.parametrize("dtype", BITS)
def test_products_and_sums_move_both_ways_by_one_unit_at_most(dtype):
    x = torch.rand(64, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    for compute in (lambda: x @ x, lambda: x.sum(0), lambda: torch.nn.functional.linear(x, x, x[0]), lambda: x.exp()):
        with Shaken(0):
            moved = compute()
        assert set(apart(moved, compute()).unique().tolist()) <= {-1, 0, 1}
    with Shaken(0):
        assert set(apart(x @ x, x @ x).unique().tolist()) == {0}, "the same product twice is not the same"
        moved = x @ x
    assert set(apart(moved, x @ x).unique().tolist()) == {-1, 0, 1}


def losses() -> list[float]:
    torch.manual_seed(0)
    net, x = torch.nn.Linear(8, 1), torch.rand(32, 8)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    values = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


def test_a_training_run_moves_a_little_and_by_its_seed_alone():
    plain = losses()
    runs = []
    for seed in (0, 0, 1):
        with Shaken(seed):
            runs.append(losses())
    assert runs[0] == runs[1] != runs[2] and plain not in runs
    assert runs[0] == pytest.approx(plain, rel=1e-5) and runs[2] == pytest.approx(plain, rel=1e-5)


def test_the_backward_pass_and_the_fused_updates_of_optimizers_move():
    w = torch.rand(500, generator=torch.Generator().manual_seed(0)).requires_grad_()
    with Shaken(0):
        moved = torch.autograd.grad(w.softmax(0)[0], w)[0]
        updated = torch._foreach_addcmul([w.detach()], [w.detach()], [w.detach()], 0.1)[0]
        in_place = w.detach().clone()
        torch._foreach_addcmul_([in_place], [w.detach()], [w.detach()], 0.1)
        stepped = torch.add(w.detach(), w.detach(), alpha=-0.1)
    d = w.detach()
    assert not torch.equal(moved, torch.autograd.grad(w.softmax(0)[0], w)[0])
    assert torch.equal(updated, in_place) and not torch.equal(updated, torch.addcmul(d, d, d, value=0.1))
    assert not torch.equal(stepped, torch.add(d, d, alpha=-0.1))


def test_what_is_exact_on_every_processor_stays():
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1000.0, 0.5], [torch.inf, 1.0], [torch.nan, 1.0], [1e-40, 0.0]])
    odd = torch.tensor([0.1, 0.7, 1.3]).repeat(100)
    with Shaken(0):
        total, product = x.sum(1), odd * odd + odd / 3
    assert torch.equal(total.nan_to_num(7), x.sum(1).nan_to_num(7)) and torch.equal(product, odd * odd + odd / 3)


def test_the_largest_number_never_becomes_infinite():
    top = torch.tensor([torch.finfo(torch.float32).max, 0.0])
    for seed in range(20):
        with Shaken(seed):
            assert top.sum().isfinite()


def test_an_update_by_nothing_changes_nothing():
    start = torch.rand(500, generator=torch.Generator().manual_seed(0))
    weight = start.clone().requires_grad_()
    weight.grad = torch.zeros(500)
    with Shaken(0):
        for optimizer in (torch.optim.SGD([weight], lr=0.1), torch.optim.Adam([weight], lr=0.1)):
            optimizer.step()
    assert torch.equal(weight, start)


def test_a_nan_keeps_its_payload():
    bits = torch.tensor([0x7FC12345, 0x7F812345], dtype=torch.int32)
    value = bits.view(torch.float32).clone()
    shaken.move(value, 0)
    assert torch.equal(value.view(torch.int32), bits)


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_the_modes_of_a_program_its_random_state_and_versions_know_nothing_of_it():
    def program() -> tuple:
        with Seen() as seen:
            losses()
            noise = torch.rand(3)
            product = torch.zeros(2, 2).addmm_(torch.full((2, 2), 0.1), torch.full((2, 2), 0.7))
        return seen.names, noise.tolist(), product._version

    plain = program()
    with Shaken(0):
        assert program() == plain


def test_it_works_under_vmap_and_in_inference_mode():
    x = torch.rand(50, 9, generator=torch.Generator().manual_seed(0))
    plain = torch.func.vmap(lambda row: row.sum())(x)
    with Shaken(0):
        mapped = torch.func.vmap(lambda row: row.sum())(x)
        with torch.inference_mode():
            inferred = torch.nn.functional.linear(x, x)
    assert not torch.equal(mapped, plain) and not torch.equal(inferred, torch.nn.functional.linear(x, x))
