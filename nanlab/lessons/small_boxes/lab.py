"""The half-precision lab of lesson 04: gradients of a small network against a format's range, moved by a loss scale."""

import math
from dataclasses import dataclass

import torch

from nanlab import formats
from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Choice, Number
from nanlab.course.lab.map import Kind, Map
from nanlab.formats import Format
from nanlab.lessons.small_boxes.gradients import activation_gradients
from nanlab.plots import Band, Bars, Chart

_LOW, _HIGH, _WIDTH = -50, 22, 2  # exponents of two in view, and how many one bar takes
_FORMATS = {"fp16": "float16", "bf16": "bfloat16", "fp8 E5M2": "float8_e5m2", "fp8 E4M3": "float8_e4m3fn"}
_LADDER = tuple(2.0**k for k in (0, 3, 6, 10, 13, 16, 20, 24, 28, 30, 32))


@dataclass(frozen=True)
class Spread:
    """Where the scaled gradients lie: the share of each bar, and of what the format loses at either end."""

    fmt: Format
    scale: float
    heights: list[float]  # per cent of the gradients that are not 0, by exponent
    zero: float  # share of all gradients that were 0 before they were rounded
    lost: float  # share of the others that round to 0
    over: float  # share of the others that become infinite (nan in E4M3)


def spread(gradients: torch.Tensor, fmt: Format, scale: float) -> Spread:
    """What `fmt` keeps of `gradients` times `scale`; thresholds follow from the format, ties to even included."""
    sizes = gradients[gradients != 0].abs().double() * scale
    places = sizes.log2().clamp(_LOW, _HIGH - 1e-9)
    counts = torch.histc(places, bins=(_HIGH - _LOW) // _WIDTH, min=_LOW, max=_HIGH)
    return Spread(
        fmt,
        scale,
        heights=(100 * counts / sizes.numel()).tolist(),
        zero=1 - sizes.numel() / gradients.numel(),
        lost=(sizes <= fmt.smallest_subnormal / 2).double().mean().item(),
        over=(sizes >= fmt.overflows_from).double().mean().item(),
    )


class HalfLab(Lab):
    """A histogram of gradients, and the two ends at which a small format loses them."""

    controls = (
        Number("scale", "loss scale", 1.0, 2.0**-10, 2.0**40, _LADDER, hint="− and + take powers of two"),
        Choice("dtype", "number format", _FORMATS, "float16"),
        Choice("steps", "training steps done", {"0": 0, "50": 50, "200": 200}, 200),
    )
    buttons = (
        Button("No scaling"),
        Button("8, as in the paper", {"scale": 8.0}),
        Button("65,536, GradScaler's first", {"scale": 65536.0}),
        Button("Far too much", {"scale": 2.0**30}),
    )
    buttons_label = "Loss scale:"
    beginner = ("scale", "dtype")
    map = Map(
        "Map: what a loss scale saves and loses, by number format",
        "scale",
        "dtype",
        tuple(2.0**k for k in range(0, 41, 2)),
        tuple(_FORMATS.values()),
        (
            Kind("less than 1 in 1,000 becomes 0, none overflows", "good"),
            Kind("some become 0 (tenths of them)", "slow", "2"),
            Kind("half or more become 0", "rises", "7"),
            Kind("some overflow: the step is skipped", "worst", "!"),
        ),
        every=3,
    )

    def compute(self, scale: float, dtype: str, steps: int) -> Spread:
        return spread(activation_gradients(steps), formats.get(dtype), scale)

    def chart(self, result: Spread) -> Chart:
        edges = [float(e) for e in range(_LOW, _HIGH + 1, _WIDTH)]
        return Chart(
            title=f"Gradients times {result.scale:.4g}, in {result.fmt.name}",
            x_label="size, as a power of two",
            y_label="% of the gradients",
            bars=(Bars("gradients", result.heights, edges),),
            bands=_bands(result.fmt),
            x_range=(_LOW, _HIGH),
            y_range=(0, 1.2 * max(result.heights)),  # room for the names of the bands
            digits=2,
            alt=self.sentence(result),
        )

    def sentence(self, result: Spread) -> str:
        name = result.fmt.name
        past = _past(result.fmt)
        if result.lost < 0.0005 and result.over == 0:
            verdict = f"Nearly all of them fit into {name}."
        elif result.over > 0:
            verdict = f"One {past} is enough: a scaler skips this step and halves the scale."
        else:
            verdict = "What rounds to 0 is never learnt from."
        return (
            f"Of the gradients that are not 0, {_per_cent(result.lost)} round to 0 in {name} and "
            f"{_per_cent(result.over)} become {past}. {verdict}"
        )

    def fate(self, result: Spread) -> tuple[int, str]:
        if result.over > 0:
            return 3, "!"
        if result.lost < 0.001:
            return 0, ""
        return (2 if result.lost >= 0.5 else 1), str(min(9, int(10 * result.lost)) or "")

    def summary(self, result: Spread) -> str:
        return f"lost below {_per_cent(result.lost)}, above {_per_cent(result.over)}"


def _bands(fmt: Format) -> tuple[Band, ...]:
    low, high = math.log2(fmt.smallest_subnormal) - 1, math.log2(fmt.max)
    bands = [Band(max(low, _LOW), min(high, _HIGH), f"{fmt.name} holds these", "good")]
    if low > _LOW:
        bands.insert(0, Band(_LOW, low, "become 0", "bad"))
    if high < _HIGH:
        bands.append(Band(high, _HIGH, _past(fmt), "bad"))
    return tuple(bands)


def _past(fmt: Format) -> str:
    """What a value too large for `fmt` becomes."""
    return "inf" if fmt.has_infinity else "nan"


def _per_cent(share: float) -> str:
    """Two digits, since the third of a trained histogram differs between processors."""
    return "0 %" if share == 0 else "less than 0.1 %" if share < 0.001 else f"{100 * share:.2g} %"
