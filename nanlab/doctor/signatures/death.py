"""How the run died: in one calm record, in the last batch, with inf first, or only on some batches."""

from collections.abc import Iterator
from statistics import median

from nanlab.doctor.run import Point
from nanlab.doctor.signatures.evidence import Evidence, Findings

FEW = 4  # finite records below which a run is not called flat


def instant_death(found: Findings) -> Iterator[Evidence]:
    """A calm run that dies in one record: something in that batch, not divergence."""
    onset, points = found.onset, found.before
    if onset is None or len(points) < (1 if (onset.step or 0) > 50 else 2):
        return
    values = [abs(p.value.number) for p in points[-8:]]
    calm = max(values[-3:]) <= 1.8 * median(values) + 0.05
    if not calm:
        return
    lines = (points[-1].line, onset.line)
    if len(points) >= FEW or (len(points) > 1 and (onset.step or 0) > 200):
        yield Evidence(
            "a calm run, dead in one record",
            lines,
            {
                "log_or_div_of_zero": 0.5,
                "bad_data": 0.5,
                "fp16_overflow_or_no_scaler": 0.3,
                "empty_reduction": 0.4,
                "lr_too_high": -0.4,
                "exploding_gradients": -0.3,
                "unscaled_inputs_or_targets": -1.6,
                "bad_init_or_uninitialised": -1.4,
                "unknown": 1.2 if _bare(found) else 0.8,
            },
        )
    else:
        yield Evidence(
            "no growth in the few records before the end",
            lines,
            {"lr_too_high": -0.1, "unscaled_inputs_or_targets": -0.7, "unknown": 0.4},
        )


def _bare(found: Findings) -> bool:
    """Only a curve: no message that says something, and nothing beside the loss on the line where it ends."""
    beside = {v.role for v in found.event.values} if found.event else set()
    more = beside & {"lr", "gradient", "scale", "metric", "state"}
    return not more and not any(hit.phrase.weights for hit in found.run.hits)


def one_record(found: Findings) -> Iterator[Evidence]:
    """One finite record and then none: the first updates did it, or the first derivative."""
    onset, points = found.onset, found.before
    later = onset is not None and any(p.value.finite and p.line > onset.line for p in found.run.losses())
    if onset is None or later or len(points) != 1 or (points[0].event.step or 0) > 20:
        return
    weights = {
        "lr_too_high": 0.5,
        "fp16_overflow_or_no_scaler": 0.4,
        "log_or_div_of_zero": 0.3,
        "hardware_or_kernel_bug": 0.2,
        "unscaled_inputs_or_targets": 0.2,
        "empty_reduction": -0.3,
    }
    yield Evidence("finite in the first record and in none after it", (points[0].line, onset.line), weights)


def last_batch(found: Findings) -> Iterator[Evidence]:
    """Bad in the last batch of an epoch, which is shorter than the others."""
    if found.onset is None or not found.before:
        return
    event = next((e for e in found.run.events if e.line == found.onset.line), None)
    if (
        event is not None
        and event.total
        and event.step
        and event.total - 1 <= event.step <= event.total
        and event.total > 5
    ):
        yield Evidence("bad in the last batch of the epoch, the short one", (event.line,), {"empty_reduction": 1.8})


def inf_before_nan(found: Findings) -> Iterator[Evidence]:
    """inf comes first where something overflowed or was divided by zero; NaN where inf met inf, or 0 met 0."""
    onset = found.onset
    if onset is None or onset.kind != "inf":
        return
    yield Evidence(
        "inf came first: something overflowed, or a number was divided by zero",
        (onset.line,),
        {
            "lr_too_high": 0.4,
            "exploding_gradients": 0.4,
            "softmax_or_exp_overflow": 0.6,
            "fp16_overflow_or_no_scaler": 0.4,
            "log_or_div_of_zero": 0.2,
            "empty_reduction": -0.6,
            "fully_masked_attention": -0.8,
        },
    )
    if not found.before:
        weights = {"log_or_div_of_zero": 0.6, "fp16_overflow_or_no_scaler": 0.2, "lr_too_high": -0.5}
        yield Evidence("inf in the first record: a logarithm of 0 gives it", (onset.line,), weights)


def transient(found: Findings) -> Iterator[Evidence]:
    """Single bad records in a run that goes on: some batches are bad, the weights are not."""
    onset = found.onset
    if onset is None or onset.sign == "message":
        return
    points = found.run.losses()
    bad = [p for p in points if not p.value.finite]
    good_after = [p for p in points if p.value.finite and bad and p.line > bad[0].line]
    if (
        not bad
        or not good_after
        or any(p.value.average for p in points)
        or not _same_process(found, bad[0], good_after[0])
    ):
        return
    lines = (bad[0].line, good_after[0].line)
    weights = {
        "lr_too_high": -1.2,
        "exploding_gradients": -0.9,
        "poisoned_state": -1.5,
        "unscaled_inputs_or_targets": -0.8,
    }
    if len(good_after) > len(bad):
        more = {"bad_data": 1.0, "empty_reduction": 1.3, "fully_masked_attention": 0.4}
        yield Evidence("the loss is bad on some batches and fine again after them", lines, weights | more)
    else:
        more = {"bad_data": 0.7, "empty_reduction": 0.6}
        yield Evidence("the loss came back once: the weights were not spoilt yet", lines, weights | more)


def _same_process(found: Findings, bad: Point, good: Point) -> bool:
    """Not another rank's record, and not a second run in the same log."""
    between = [p for p in found.run.losses() if bad.line < p.line <= good.line]
    forward = all((p.event.step or 0) >= (bad.event.step or 0) for p in between) or good.event.epoch != bad.event.epoch
    return forward and good.event.rank == bad.event.rank
