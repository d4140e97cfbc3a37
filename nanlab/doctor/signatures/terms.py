"""One part is bad and the others are not: a loss term, a count, the gradient, the validation."""

import re
from collections.abc import Iterator

from nanlab.doctor.readers.event import Event
from nanlab.doctor.signatures.evidence import Evidence, Findings

_KINDS = (  # what a loss term's name says about the operation in it
    (
        re.compile(r"\bkl|kld|log_?var|latloss|latent"),
        "a KL term",
        {"softmax_or_exp_overflow": 0.9, "log_or_div_of_zero": 0.5},
    ),
    (
        re.compile(r"cls|class|(?:^|[ _])ce(?:$|[ _])"),
        "a classification term",
        {"bad_data": 0.8, "log_or_div_of_zero": 0.2},
    ),
    (re.compile(r"ctc|transducer|rnnt|simple_loss|pruned"), "an alignment loss", {"bad_data": 0.9}),
    (
        re.compile(r"iou|giou|wh\b|bbox|box|rpn|reg(?:ression)?\b|loc(?:$|[^a-z])"),
        "a box term",
        {"bad_data": 1.1, "log_or_div_of_zero": 0.2, "empty_reduction": 0.2},
    ),
    (
        re.compile(r"mask|seg|dice|kp|keypoint|pose|aux|contrast|triplet"),
        "a term over a selection",
        {"empty_reduction": 1.0, "log_or_div_of_zero": 0.3},
    ),
    (
        re.compile(r"bce|obj|gan|adv|entropy|nll|xent|ppl|likelihood|flow|prior"),
        "a term with a logarithm",
        {"log_or_div_of_zero": 0.7, "softmax_or_exp_overflow": 0.4},
    ),
    (re.compile(r"mse|l2|recon|pixel|rmse"), "a squared error", {"unscaled_inputs_or_targets": 0.5}),
)
_COUNT = re.compile(
    r"(?:^|[ _/])(?:n_?|num_?|count_?|#)?(?:count|instances?|pos(?:itives?)?|valid|targets?|labels?|match(?:ed"
    r"|es)?|fg|tokens?|ntokens|mask(?:ed)?|selected|frames?|over|objects?|gt|boxes|utts|points|pixels|voxels|rays"
    r"|words|samples|supervised|rows|items|examples|elements|triplets|pairs|nodes"
    r"|non_?zero_\w{1,12})(?:[ _](?:pixels|tokens|points|samples|anchors|count|targets|boxes|rays|elements"
    r"|frames|labels|pairs))?$"
)


def one_term(found: Findings) -> Iterator[Evidence]:
    """One loss term bad while another on the same line is finite."""
    event = found.event
    if event is None:
        return
    values = _terms(found, event)
    names = {v.name.split("/")[-1] for v in values}
    parts = [v for v in values if v.name.split("/")[-1] not in {"loss", "total_loss", "total loss"}] or values
    bad = [v for v in parts if not v.finite]
    good = [v for v in parts if v.finite and v.number != 0.0]
    if bad and good and len(names) > 1:
        yield Evidence(
            f"only {', '.join(v.name for v in bad[:2])} is bad, {good[0].name} is finite",
            (event.line,),
            {
                "log_or_div_of_zero": 0.8,
                "empty_reduction": 0.8,
                "softmax_or_exp_overflow": 0.5,
                "bad_data": 0.2,
                "lr_too_high": -0.7,
                "poisoned_state": -1.0,
                "unscaled_inputs_or_targets": -0.5,
            },
        )
    if not bad and parts != values:
        says = "the total is bad and every term that the line shows is finite"
        weights = {
            "log_or_div_of_zero": 0.3,
            "hardware_or_kernel_bug": 0.4,
            "empty_reduction": 0.3,
            "lr_too_high": -0.5,
        }
        yield Evidence(says, (event.line,), weights)
    infinite = [v for v in parts if v.kind == "inf"]
    for pattern, says, weights in _KINDS:
        candidates = infinite if infinite and len(infinite) < len(bad) else bad
        named = [v.name for v in candidates if len(v.name.split()) <= 3 and pattern.search(v.name)]
        if named and (good or len(bad) == 1):
            yield Evidence(f"{says} is bad: {named[0]}", (event.line,), weights)
            return


_PART = re.compile(r"(?:^|[ _/.])(?:cls|class\w{0,9}|box|bbox|reg\w{0,8}|obj\w{0,7}|mask|kl|rec\w{0,5}|iou|rpn|rcnn)$")


def _terms(found: Findings, event: Event) -> list:
    """The loss terms of a record: those on its line, and on the lines below it that carry no counter of their own."""
    below = [e for e in found.run.events if e.block == event.block and 0 < e.line - event.line <= 6 and not e.counted]
    own = [v for v in event.values if v.role == "loss" and not (v.validation or v.average)]
    under = [v for e in below for v in e.values if not e.trace and _PART.search(v.name)] if event.counted else []
    return [v for v in own + under if not v.prose or v.name.endswith("loss")]


def counts(found: Findings) -> Iterator[Evidence]:
    """A count of targets that is 0 on the bad line: nothing to average."""
    event = found.event
    if event is None:
        return
    zero = [
        v.name
        for v in event.values
        if v.number == 0 and _COUNT.search(v.name) and "nan" not in v.name and "skip" not in v.name
    ]
    if zero:
        yield Evidence(f"{zero[0]} is 0 on the bad line", (event.line,), {"empty_reduction": 2.2})


def gradient_first(found: Findings) -> Iterator[Evidence]:
    """A finite loss with gradients that are not: a derivative that is infinite, or an overflow in backward."""
    event = found.event
    if event is None or found.first.sign != "gradient":
        return
    near = [e for e in found.run.events if e.block == event.block or e.line == event.line]
    if any(v.role == "loss" and v.finite and v.number != 0 and not v.validation for e in near for v in e.values):
        yield Evidence(
            "the loss is finite and the gradient is not",
            (event.line,),
            {
                "hidden_gradient": 2.2,
                "fp16_overflow_or_no_scaler": 0.5,
                "hardware_or_kernel_bug": 0.8,
                "log_or_div_of_zero": 0.6,
                "exploding_gradients": 0.3,
                "empty_reduction": -0.5,
            },
        )


def gradient_fine(found: Findings) -> Iterator[Evidence]:
    """A bad loss with finite gradients: no element that is bad takes part in backward."""
    event = found.event
    if event is None or found.first.sign != "loss":
        return
    norms = [v for v in event.values if v.role == "gradient" and not v.average]
    if norms and all(v.finite for v in norms):
        yield Evidence(
            "the loss is not finite and the gradient is",
            (event.line,),
            {"empty_reduction": 1.5, "fully_masked_attention": 0.6, "exploding_gradients": -0.8, "lr_too_high": -0.5},
        )


def validation_only(found: Findings) -> Iterator[Evidence]:
    """A validation loss that is bad while the training loss is fine: nothing to validate, or an overflow that only the
    evaluation meets."""
    bad = [p for a in (False, True) for p in found.run.points("loss", validation=True, average=a) if not p.value.finite]
    if not bad or found.onset is not None:
        return
    lines = tuple(p.line for p in bad[:3])
    if found.half:
        weights = {"fp16_overflow_or_no_scaler": 4.0, "metric_only": 2.0, "not_nan": -5.0, "amp_warmup_skip": -2.0}
        yield Evidence("the validation loss is bad in an fp16 run: the evaluation overflows", lines, weights)
    else:
        # a nan loss of the evaluation is no statistic: its data, its empty batches or the running statistics are at
        # fault; an infinite one is mostly the best so far, before there is one
        fault = {"bad_data": 4.4, "poisoned_state": 4.4, "empty_reduction": 4.4, "metric_only": 3.0}
        start = {"metric_only": 4.5, "empty_reduction": 1.5, "bad_data": 0.6}
        weights = fault if any(p.value.kind == "nan" for p in bad) else start
        weights = {**weights, "fp16_overflow_or_no_scaler": 0.5, "not_nan": -5.0}
        yield Evidence("only the validation loss is bad, the training loss is finite", lines, weights)
