"""What each way of watching for non-finite values costs a training step: ratios to the plain step, measured in one run.

    python benchmarks/overhead.py [--rounds 15] [--only mlp,gpt,lstm] [--json OUT]

Every way runs in turn, again and again, on one thread; the medians of the processor time are compared, which other
work on the machine disturbs less than time on the clock. The figures in the notebooks and in the README come from
here.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor, nn

from nanlab.detect.guarding.guard import guard
from nanlab.detect.trace.tracer import Tracer

SEED = 0


@dataclass
class Case:
    """A model, its batch and its loss; `steps` are run per way and turn, `turns` times a round: short turns, so that
    all ways meet the same moods of the machine."""

    name: str
    model: nn.Module
    batch: tuple[Tensor, Tensor]
    loss: Callable[[Tensor, Tensor], Tensor]
    steps: int
    turns: int = 1

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = (h.view(b, t, self.heads, -1).transpose(1, 2) for h in self.qkv(self.before(x)).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.out(mixed)
        return x + self.mlp(self.after(x))


class GPT(nn.Module):
    """Six blocks of width 384: 10.8 million weights."""

    def __init__(self, vocabulary: int = 128, width: int = 384, depth: int = 6, context: int = 64) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, 6) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids) + self.place(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 128, num_layers=2, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def cases() -> dict[str, Case]:
    torch.manual_seed(SEED)
    mlp = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    ids = torch.randint(0, 128, (8, 65))
    return {
        "mlp": Case("MLP 10-32-1, batch 256", mlp, (torch.randn(256, 10), torch.randn(256, 1)), F.mse_loss, 100, 6),
        "gpt": Case("GPT 11 M", GPT(), (ids[:, :-1], ids[:, 1:].flatten()), F.cross_entropy, 1),
        "lstm": Case("LSTM", Recurrent(), (torch.randn(32, 40, 32), torch.randint(0, 10, (32,))), F.cross_entropy, 4),
    }


def step(case: Case, batch: tuple[Tensor, Tensor], look: Callable[[Tensor], None] | None = None) -> None:
    x, y = batch
    case.optimizer.zero_grad()
    loss = case.loss(case.model(x), y)
    if look is not None:
        look(loss)
    loss.backward()
    case.optimizer.step()


def plain(case: Case) -> Iterator[None]:
    for batch in repeat(case.batch):
        step(case, batch)
        yield


def guarded(case: Case) -> Iterator[None]:
    for batch in guard(repeat(case.batch), case.model, case.optimizer):
        step(case, batch)
        yield


def drawing(case: Case) -> Iterator[None]:
    """The guard around a body that draws from Python's and NumPy's generators, whose states must be taken then."""
    import numpy

    for batch in guard(repeat(case.batch), case.model, case.optimizer):
        random.random()
        numpy.random.random()
        step(case, batch)
        yield


def look(loss: Tensor) -> None:
    if not math.isfinite(loss.item()):
        raise ArithmeticError


def checked(case: Case) -> Iterator[None]:
    for batch in repeat(case.batch):
        step(case, batch, look)
        yield


def within(context: Callable[[Case], object]) -> Callable[[Case], Iterator[None]]:
    """A way that runs each step inside a context made for the occasion."""

    def way(case: Case) -> Iterator[None]:
        while True:
            with context(case):
                for batch in repeat(case.batch, case.steps):
                    step(case, batch)
            yield

    way.whole = True
    return way


@contextmanager
def underflow_overflow(case: Case) -> Iterator[None]:
    """transformers' DebugUnderflowOverflow; its hooks are removed again. Its frames' texts are built and not shown."""
    from transformers.debug_utils import DebugUnderflowOverflow

    before = {id(m): set(m._forward_hooks) for m in case.model.modules()}
    DebugUnderflowOverflow(case.model)
    try:
        yield
    finally:
        for m in case.model.modules():
            for handle in set(m._forward_hooks) - before[id(m)]:
                del m._forward_hooks[handle]


def ways() -> dict[str, Callable[[Case], Iterator[None]]]:
    found = {
        "plain": plain,
        "isfinite(loss)": checked,
        "guard": guarded,
        "guard, Python's and NumPy's random used": drawing,
        "hunt": within(lambda case: Tracer(case.model, case.optimizer, case.batch)),
        "anomaly mode": within(lambda case: torch.autograd.set_detect_anomaly(True)),
    }
    try:
        import transformers  # noqa: F401

        found["DebugUnderflowOverflow"] = within(underflow_overflow)
    except ImportError:
        pass
    return found


def measure(case: Case, rounds: int, tick: Callable[[], None]) -> dict[str, float]:
    """Median seconds of processor time of a step, by way; the first turn of each warms up and is not counted."""
    chosen = ways()
    times: dict[str, list[float]] = {name: [] for name in chosen}
    order = list(chosen)
    for number in range(rounds * case.turns + 1):
        random.Random(number).shuffle(order)
        for name in order:
            seconds = _timed(chosen[name], case)
            if number:
                times[name].append(seconds)
        if number % case.turns == 0:
            tick()
    return {name: median(times[name]) for name in chosen}


def _timed(way: Callable[[Case], Iterator[None]], case: Case) -> float:
    """Seconds of a step: the mean over one turn. A way is begun anew for every turn and ended after it, since a guard
    that waits for its turn would still hear the others' steps; its first step, with the first look, is not timed."""
    running = way(case)
    whole = getattr(way, "whole", False)
    if not whole:
        next(running)
    began = time.process_time()
    for _ in range(1 if whole else case.steps):
        next(running)
    seconds = time.process_time() - began
    running.close()
    return seconds / case.steps


def table(results: dict[str, dict[str, float]], names: dict[str, str]) -> Table:
    shown = Table(title="A step's time, as a ratio to the plain step (medians, interleaved, one thread)")
    shown.add_column("")
    for key in results:
        shown.add_column(names[key], justify="right")
    for way in next(iter(results.values())):
        cells = []
        for times in results.values():
            ratio, extra = times[way] / times["plain"], (times[way] - times["plain"]) * 1e6
            cells.append(f"{times[way] * 1e3:.3g} ms" if way == "plain" else f"{ratio:.3f} ({extra:+.0f} µs)")
        shown.add_row(way, *cells)
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="mlp,gpt,lstm", help="which cases, separated by commas")
    parser.add_argument("--json", type=Path, help="also write the seconds there")
    given = parser.parse_args()
    torch.set_num_threads(1)
    console, every = Console(), cases()
    chosen = {key: every[key] for key in given.only.split(",")}
    results = {}
    with Progress(console=console, transient=True) if console.is_terminal else nullcontext() as progress:
        for key, case in chosen.items():
            task = progress.add_task(case.name, total=given.rounds + 1) if progress else None
            results[key] = measure(case, given.rounds, lambda task=task: progress.advance(task) if progress else None)
    console.print(table(results, {key: case.name for key, case in chosen.items()}))
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
