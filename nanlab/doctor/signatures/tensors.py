"""The first bad thing is a tensor that a line names."""

import re
from collections.abc import Iterator

from nanlab.doctor.signatures.evidence import Evidence, Findings

_STATES = (  # what a bad tensor that a line names says
    (
        re.compile(r"input|image|(?:^|[ _])(?:x|y|data|batch|features?|targets?|labels?)(?:$|[ _])"),
        {"bad_data": 2.4, "lr_too_high": -0.5},
    ),
    (re.compile(r"running|exp_avg|ema|buffer|moment"), {"poisoned_state": 2.0}),
    (
        re.compile(r"weight|param|bias"),
        {"poisoned_state": 0.7, "bad_init_or_uninitialised": 0.7, "exploding_gradients": 0.3, "lr_too_high": 0.3},
    ),
    (
        re.compile(r"logit|score|attn|attention|prob|softmax"),
        {"softmax_or_exp_overflow": 0.9, "fp16_overflow_or_no_scaler": 0.5, "fully_masked_attention": 0.5},
    ),
    (
        re.compile(r"output|activation|hidden|layer|feature"),
        {"fp16_overflow_or_no_scaler": 0.7, "exploding_gradients": 0.4},
    ),
)


def tensor(found: Findings) -> Iterator[Evidence]:
    """The first bad thing is a tensor that a line names: the input, a weight, an activation."""
    event = found.event
    if event is None or found.first.sign != "state":
        return
    bad = next((v for v in event.values if v.role == "state" and not v.finite), None)
    for pattern, weights in _STATES:
        if bad is not None and pattern.search(bad.name):
            yield Evidence(f"{bad.name} was the first to be bad", (event.line,), weights)
            return
