"""Numbers printed beside the loss that give the cause away: a spread of 0, huge logits, activations at fp16's end."""

import re
from collections.abc import Iterator

from nanlab.doctor.run import Point
from nanlab.doctor.signatures.evidence import Evidence, Findings

EXP_LIMIT = 88.0  # log of the largest float32, rounded down
VARIANCE_LIMIT = 20.0  # exp of a log variance above this is no variance of data
FP16_MAX = 65504.0
WILD = 1e5  # no initialisation gives a weight of this size
BEYOND = 1e18  # nor any data a value of this
NEAR = 12  # lines before the onset that count as beside it

_DENOMINATOR = re.compile(
    r"(?:^|[ _/.])(?:std|stddev|var|variance|norm|denom(?:inator)?|sigma|dist(?:ance)?|prob|probability|degree|radius"
    r"|divisor)(?:[ _/.](?:min|sum|mean))?$"
)
_NOT = re.compile(r"grad|gnorm|reward|loss|running|total")
_EXPONENT = re.compile(r"logit|attn|attention|energ|\bscores?\b|\bqk")
_LOG_VARIANCE = re.compile(r"log_?(?:var|std|sigma|scale)")
_ACTIVATION = re.compile(r"act|hidden|output|layer|absmax|abs_max|feature|logit")
_WEIGHT = re.compile(r"(?:weight|param|bias|(?:^|[ _/.])init)\w{0,6}[ _/.:]{1,2}(?:max|min|mean|std|norm|abs|absmax)")


def _ahead(found: Findings) -> list[Point]:
    """Finite values at the onset and before it that are no losses, the latest first."""
    if found.onset is None:
        return []
    points = found.run.points("state", "metric", "other", "scale", "gradient")
    return [p for p in reversed(points) if p.value.finite and p.line <= found.onset.line]


def zero_denominator(found: Findings) -> Iterator[Evidence]:
    """A deviation, norm or probability of exactly 0 beside the onset: what it divides, or its logarithm, is bad."""
    for point in _ahead(found):
        name = point.value.name
        beside = found.first.line - point.line <= NEAR
        if beside and point.value.number == 0 and _DENOMINATOR.search(name) and not _NOT.search(name):
            yield Evidence(
                f"{name} is 0 just before", (point.line,), {"log_or_div_of_zero": 1.9, "empty_reduction": 0.3}
            )
            return


def large_exponent(found: Findings) -> Iterator[Evidence]:
    """Logits beyond the limit of exp, or a log variance that makes a variance of no data."""
    for point in _ahead(found):
        name, size = point.value.name, abs(point.value.number)
        if (_EXPONENT.search(name) and size > EXP_LIMIT) or (_LOG_VARIANCE.search(name) and size > VARIANCE_LIMIT):
            yield Evidence(
                f"{name} is {point.value.raw}: exp overflows",
                (point.line,),
                {"softmax_or_exp_overflow": 2.0, "fp16_overflow_or_no_scaler": 0.3},
            )
            return


def near_fp16_end(found: Findings) -> Iterator[Evidence]:
    """Activations near or above 65,504, the largest fp16."""
    for point in _ahead(found):
        if _ACTIVATION.search(point.value.name) and 0.5 * FP16_MAX < abs(point.value.number) < 1e7:
            yield Evidence(
                f"{point.value.name} is {point.value.raw}, at the end of fp16",
                (point.line,),
                {"fp16_overflow_or_no_scaler": 1.8, "exploding_gradients": 0.4},
            )
            return


def wild_weights(found: Findings) -> Iterator[Evidence]:
    """Weights of a size that no initialisation gives, before the first loss."""
    first = min((p.line for p in found.run.points("loss")), default=1 << 60)
    for point in _ahead(found):
        name = point.value.name
        size = abs(point.value.number)
        wild = size > BEYOND or (size > WILD and _WEIGHT.search(name))
        if point.line < first and wild and "num" not in name and point.value.role != "gradient":
            yield Evidence(
                f"{name} is {point.value.raw} before the first step", (point.line,), {"bad_init_or_uninitialised": 2.2}
            )
            return
