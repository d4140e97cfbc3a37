"""What anomaly mode costs: a training step with it, over the same step without, on three sizes of graph.

Run: python benchmarks/anomaly.py [--rounds 30]. Steps alternate in one process, on one thread; the ratio is that of
the medians. A second table takes chains of n sines of m numbers apart: cost a node against cost an element. Behind the
figures of lesson 03.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from nanlab.lessons.padding_row.anomaly import GRAPHS, count_checks


def seconds(loss: Callable[[], torch.Tensor], anomaly: bool, check: bool) -> float:
    """Seconds for one forward and backward pass. With `check` off, anomaly mode keeps stacks and looks at nothing."""
    start = time.perf_counter()
    with torch.autograd.set_detect_anomaly(anomaly, check):
        loss().backward()
    return time.perf_counter() - start


def measure(loss: Callable[[], torch.Tensor], rounds: int) -> tuple[float, float, float]:
    """Medians in seconds: plain, with stacks kept, with stacks kept and gradients checked."""
    kinds = ((False, False), (True, False), (True, True))
    for kind in kinds:
        seconds(loss, *kind)
    times = [[seconds(loss, *kind) for kind in kinds] for _ in range(rounds)]
    return tuple(statistics.median(column) for column in zip(*times, strict=True))


def chain(nodes: int, elements: int) -> Callable[[], torch.Tensor]:
    """A loss whose backward graph is a chain of `nodes` sines of `elements` numbers."""
    start = torch.ones(elements, requires_grad=True)

    def loss() -> torch.Tensor:
        value = start
        for _ in range(nodes):
            value = value.sin()
        return value.sum()

    return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {time.strftime('%Y-%m-%d')}, one thread, {rounds} rounds")
    print(f"{'graph':30} {'checks':>6} {'plain':>10} {'stacks only':>12} {'whole':>6} {'µs a check':>11}")
    for name, make in GRAPHS.items():
        loss = make()
        checks = count_checks(loss)
        plain, stacks, whole = measure(loss, rounds)
        ratios = f"{stacks / plain:>11.2f}x {whole / plain:>5.2f}x"
        print(f"{name:30} {checks:>6} {1e3 * plain:>7.2f} ms {ratios} {1e6 * (whole - plain) / checks:>11.1f}")
    for nodes, elements in ((10, 100), (100, 100), (1000, 100), (100, 10_000), (100, 1_000_000)):
        plain, stacks, whole = measure(chain(nodes, elements), max(5, rounds // (1 + elements // 100_000)))
        name, ratios = f"{nodes} sines of {elements} numbers", f"{stacks / plain:>11.2f}x {whole / plain:>5.2f}x"
        print(f"{name:30} {nodes + 1:>6} {1e3 * plain:>7.2f} ms {ratios} {1e6 * (whole - plain) / (nodes + 1):>11.1f}")


if __name__ == "__main__":
    main()
