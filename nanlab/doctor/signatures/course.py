"""How the loss went before it died: bad or huge from the start, or growing."""

from collections.abc import Iterator
from statistics import median

from nanlab.doctor.run import Point
from nanlab.doctor.signatures.evidence import Evidence, Findings
from nanlab.doctor.signatures.settings import is_language

HUGE = 1e4  # a first loss that only unscaled data gives; cross-entropy starts at log(classes), below 12
LARGE = 300.0
CLIMB = 8.0  # growth over the run that is no noise


def start(found: Findings) -> Iterator[Evidence]:
    """NaN in the first record that the log shows, or a huge loss in it."""
    onset, points = found.onset, found.before
    if onset is None:
        return
    if not points and onset.sign in {"loss", "unnamed", "silent", "gradient"}:
        yield from _from_the_first(found)
    elif points:
        first = points[0].value.number
        early = (points[0].event.step or 0) <= 5 or (
            (points[0].event.epoch or 0) <= 1 and (points[0].event.step or 0) <= 100
        )
        if first >= HUGE and early:
            yield Evidence(
                f"the first loss is {first:.3g}, before much was learnt",
                (points[0].line,),
                {"unscaled_inputs_or_targets": 2.0, "bad_init_or_uninitialised": 0.5},
            )
        elif first >= LARGE and early and len(points) < 30:
            yield Evidence(
                f"the first loss is large: {first:.3g}", (points[0].line,), {"unscaled_inputs_or_targets": 0.8}
            )
        if first > 25 and early and is_language(found):
            weights = {"bad_init_or_uninitialised": 1.4, "hardware_or_kernel_bug": 0.5}
            yield Evidence(
                f"a language model starts at the log of its vocabulary, not at {first:.3g}", (points[0].line,), weights
            )
        if first > 1e15:
            yield Evidence("no data gives such a loss", (points[0].line,), {"bad_init_or_uninitialised": 1.5})


def _from_the_first(found: Findings) -> Iterator[Evidence]:
    onset = found.first
    weights = {
        "bad_data": 0.7, "unscaled_inputs_or_targets": 1.0, "bad_init_or_uninitialised": 0.9, "log_or_div_of_zero": 0.4,
        "fully_masked_attention": 0.7, "hardware_or_kernel_bug": 0.5, "empty_reduction": 0.3,
        "poisoned_state": -0.3, "unknown": -0.6,
    }  # fmt: skip
    if onset.step == 0:
        yield Evidence(
            "not finite in the very first step, before any update",
            (onset.line,),
            weights | {"lr_too_high": -1.5, "exploding_gradients": -1.2},
        )
    elif onset.step is None or onset.step <= 2:
        yield Evidence(
            "not finite in the first record", (onset.line,), weights | {"lr_too_high": 0.2, "exploding_gradients": -0.4}
        )
    else:
        yield Evidence(
            "the log starts after the fault: how it began is not shown",
            (onset.line,),
            {"exploding_gradients": 0.4, "lr_too_high": 0.3, "unknown": 0.4},
        )


def growth(found: Findings) -> Iterator[Evidence]:
    """Loss or gradient norm that climbs by orders of magnitude before the end."""
    points = found.before + _on_the_line(found)
    values = [abs(p.value.number) for p in points]
    if len(values) >= 2:
        low = min(values[: max(1, len(values) - 1)])
        base, last = median(values[: max(1, (2 * len(values)) // 3)]), max(values[-2:])
        ratio = last / max(base, low, 1e-3) if last > 0.5 else 1.0
        rising = sum(b > a for a, b in zip(values[-5:], values[-4:], strict=False))
        lines = tuple(p.line for p in points[-4:])
        if ratio >= CLIMB and _leapt(values, late=(points[0].event.step or 0) > 50):
            weights = {"exploding_gradients": 2.2, "lr_too_high": 0.7, "softmax_or_exp_overflow": 0.4}
            weights |= {"log_or_div_of_zero": 0.3, "unknown": -0.8, "not_nan": -4.0 if ratio > 1e6 else 0.0}
            yield Evidence(f"the loss leapt {ratio:.3g}-fold out of a calm run", lines, weights)
        elif ratio >= 1e3:
            yield Evidence(
                f"the loss grew {ratio:.3g}-fold before the end",
                lines,
                {
                    "lr_too_high": 2.0,
                    "exploding_gradients": 1.2,
                    "unscaled_inputs_or_targets": 0.6,
                    "unknown": -0.8,
                    "not_nan": -4.0 if ratio > 1e6 else 0.0,
                },
            )
        elif ratio >= CLIMB:
            yield Evidence(
                f"the loss jumped {ratio:.3g}-fold before the end",
                lines,
                {
                    "exploding_gradients": 1.1,
                    "lr_too_high": 0.9,
                    "softmax_or_exp_overflow": 0.4,
                    "log_or_div_of_zero": 0.3,
                },
            )
        elif values[-1] >= 1.5 * values[-2] and values[-1] >= 1.4 * base:
            yield Evidence(
                "the last loss before the end was the highest", lines, {"lr_too_high": 0.6, "exploding_gradients": 0.6}
            )
        elif ratio >= 1.25 and rising >= 2:
            yield Evidence(
                "the loss was rising before the end",
                lines,
                {"lr_too_high": 1.0, "exploding_gradients": 0.7, "unknown": 0.3},
            )


def _leapt(values: list[float], late: bool) -> bool:
    """Calm or falling until the last record or two, and there many times as high: no climb through the run. In a log
    that begins well into a run, two calm records are enough."""
    for cut in (-1, -2):
        calm, leap = values[:cut], values[cut:]
        if len(calm) < (2 if late else 3):
            continue
        usual = median(calm)
        if len(calm) == 2 and max(calm) > 1.3 * min(calm) + 0.05:
            continue
        if max(calm[1:]) <= 1.6 * usual + 0.05 and min(leap) >= CLIMB * usual:
            return True
    return False


def _on_the_line(found: Findings) -> list[Point]:
    """A loss that is still finite on the line where the gradient is not."""
    return [p for p in found.run.losses() if found.onset and p.line == found.onset.line and p.value.finite]
