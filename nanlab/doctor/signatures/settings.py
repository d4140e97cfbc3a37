"""What the run was told: its learning rate, and whether it continues from a checkpoint."""

import re
from collections.abc import Iterator

from nanlab.doctor.run import Point
from nanlab.doctor.signatures.evidence import Evidence, Findings

HIGH = 0.05  # above what common optimizers bear without warm-up
ADAM_HIGH = 3e-3


def learning_rate(found: Findings) -> Iterator[Evidence]:
    """A rate that is large, or still rising when the run died."""
    if found.onset is None:
        return
    rates = [p for p in found.run.points("lr") if p.value.finite and p.value.number > 0]
    ahead = [p for p in rates if p.line <= found.onset.line]
    if not rates:
        return
    top = max(rates, key=lambda p: p.value.number)
    adam = any("adam" in e.low for e in found.run.events[:300])
    if top.value.number >= HIGH or (adam and top.value.number >= ADAM_HIGH):
        yield Evidence(f"the learning rate is {top.value.number:.3g}", (top.line,), {"lr_too_high": 1.4})
    counted = [p for p in ahead if p.event.counted or p.event.block]
    values = [p.value.number for p in counted][-6:]
    if len(values) >= 3 and values == sorted(values) and len(set(values)) >= 3:
        lines = tuple(p.line for p in counted[-3:])
        yield Evidence("the learning rate was still rising when the run died", lines, {"lr_too_high": 1.6})
    if _sweep(rates):
        yield Evidence("other learning rates change nothing", tuple(p.line for p in rates[:3]), {"lr_too_high": -2.0, "unscaled_inputs_or_targets": 0.6, "bad_data": 0.4})


def _sweep(rates: list[Point]) -> bool:
    """Rates on lines of their own that span two decades: the same run tried again with another."""
    alone = [p.value.number for p in rates if len(p.event.values) == 1]
    return len(alone) >= 2 and max(alone) / min(alone) >= 100


def single_samples(found: Findings) -> Iterator[Evidence]:
    """Darknet counts images beside batches: equal numbers mean updates from one image, at a rate meant for 64."""
    for event in found.run.events:
        numbers = {v.name: v.number for v in event.values}
        if numbers.get("iteration", 0) > 1 and numbers.get("iteration") == numbers.get("images") and found.onset:
            yield Evidence("each update uses a single image", (event.line,), {"lr_too_high": 1.5})
            return


def resumed(found: Findings) -> Iterator[Evidence]:
    """Bad soon after a checkpoint was loaded."""
    onset = found.onset
    loads = [hit for hit in found.run.signals("resume") if onset is not None and hit.line < onset.line]
    if not loads:
        return
    between = [p for p in found.before if p.line > loads[-1].line]
    if len(between) <= 3:
        lines = tuple(sorted({hit.line for hit in loads}))[-3:]
        yield Evidence("bad within a few records of loading a checkpoint", (*lines, onset.line), {"poisoned_state": 2.4, "bad_init_or_uninitialised": 0.5, "lr_too_high": -0.3})
        if len(between) in {1, 2} and any("optim" in hit.text for hit in loads):
            yield Evidence("the first loss after loading is finite, the one after the optimizer's step is not", (between[0].line, onset.line), {"poisoned_state": 1.2})


_DATA = re.compile(r"(?:^|[^a-z])(?:x|y|inputs?|features?|targets?|labels?|data|images?|prices?|pixels?|values?|x_train|y_train)(?:$|[^a-z])")
_STATISTIC = re.compile(r"min|max|mean|std|range|avg")
WIDE = 200.0  # a statistic of standardised data stays far below; 255 is a raw pixel


def data_range(found: Findings) -> Iterator[Evidence]:
    """Statistics of the inputs or targets that a start-up line prints, in the hundreds or more."""
    if found.onset is None:
        return
    for event in found.run.events:
        if event.line > found.onset.line or any(v.role == "loss" for v in event.values):
            break
        wide = [v for v in event.values if v.finite and abs(v.number) >= WIDE and _STATISTIC.search(event.low) and _DATA.search(event.low)]
        wide = [v for v in wide if _STATISTIC.search(v.name) or _DATA.search(v.name)]
        if wide:
            yield Evidence(f"the data is wide: {wide[0].name} {wide[0].raw}", (event.line,), {"unscaled_inputs_or_targets": 2.2})
            return
