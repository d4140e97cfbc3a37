"""Spikes and climbs of gradient norm and loss: the mark of an explosion, and of terms that leap."""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from nanlab.doctor.run import Point
from nanlab.doctor.signatures.evidence import Evidence, Findings

SPIKE = 20.0  # times the median: no noise of batches


def norms(found: Findings) -> Iterator[Evidence]:
    """A gradient norm that climbs before the end, or spiked on the way."""
    end = found.onset.line if found.onset else 0
    points = [p for p in found.run.points("gradient") if p.value.finite and p.line <= end and p.value.number > 0]
    values = [p.value.number for p in points]
    if len(values) < 2:
        return
    usual = median(values[: max(1, (2 * len(values)) // 3)])
    ratio = max(values[-3:]) / max(usual, 1e-12)
    decades = sum(b > 3 * a for a, b in pairwise(values))
    losses = [abs(p.value.number) for p in found.before]
    if decades >= 3 and losses and max(losses[-3:]) <= 2 * losses[0] + 1:
        says = f"the gradient norm grew {ratio:.3g}-fold, record by record, under a loss that did not"
        weights = {"exploding_gradients": 3.0, "lr_too_high": 0.3, "unknown": -0.5}
        yield Evidence(says, tuple(p.line for p in points[-3:]), weights)
        return
    if ratio >= 10 or max(values[-3:]) > 1e4:
        says = f"the gradient norm grew {ratio:.3g}-fold before the end"
        weights = {"exploding_gradients": 1.5, "lr_too_high": 0.7, "unknown": -0.3}
        yield Evidence(says, tuple(p.line for p in points[-3:]), weights)
        return
    spikes = [p for p in points if p.value.number > SPIKE * median(values)]
    if spikes and len(values) >= 4:
        weights = {"exploding_gradients": 1.1, "lr_too_high": 0.5}
        yield Evidence("the gradient norm spiked on the way", tuple(p.line for p in spikes[:3]), weights)


def losses(found: Findings) -> Iterator[Evidence]:
    """A loss that spiked and came back before the run died."""
    values = [abs(p.value.number) for p in found.before]
    if len(values) < 6 or found.onset is None:
        return
    usual = median(values)
    spikes = [p for p in found.before[2:-1] if abs(p.value.number) > 5 * usual + 0.5]
    if spikes and max(values[-1:]) < 2 * usual + 0.5:
        weights = {"exploding_gradients": 0.9, "lr_too_high": 0.5, "bad_data": 0.2}
        yield Evidence("the loss spiked and came back before the end", tuple(p.line for p in spikes[:3]), weights)


def terms(found: Findings) -> Iterator[Evidence]:
    """One loss term that leaps while the total does not show it yet, or a KL term beyond all measure."""
    if found.onset is None:
        return
    main = found.before[0].value.name if found.before else ""
    for name, points in _series(found).items():
        values = [abs(p.value.number) for p in points]
        lines = tuple(p.line for p in points[-2:])
        if "kl" in name.split("/")[-1] and max(values) > 1e4:
            weights = {"softmax_or_exp_overflow": 1.5, "exploding_gradients": 0.3, "log_or_div_of_zero": -0.6}
            yield Evidence(f"{name} is beyond all measure: exp of a variance that ran away", lines, weights)
            return
        if name != main and len(values) >= 4 and max(values[-2:]) > SPIKE * max(median(values[:-2]), 1e-9):
            weights = {"exploding_gradients": 0.8, "softmax_or_exp_overflow": 0.7, "log_or_div_of_zero": 0.8}
            yield Evidence(f"{name} leapt before the end", lines, weights | {"lr_too_high": 0.5})
            return


def _series(found: Findings) -> dict[str, list[Point]]:
    """The finite values of each loss term before the onset."""
    series: dict[str, list[Point]] = {}
    for point in found.run.points("loss"):
        if point.value.finite and point.line < found.first.line:
            series.setdefault(point.value.name, []).append(point)
    return series
