"""Chooses the usual suspect: by the form, then by what else is known about the step."""

from __future__ import annotations

import torch

from nanlab.detect import forms
from nanlab.detect.forms.again import HALF
from nanlab.detect.trace.provenance import Event

RECURRENT = ("rnn", "lstm", "gru")
EXTERNAL = {"parameter": "bad_init_or_uninitialised", "buffer": "poisoned_state", "state": "poisoned_state",
            "grad": "poisoned_state"}  # fmt: skip
TERMS = 64  # rounding errors that a sum may have collected, of the size of what fed it
CANCELLED = 1e-3  # a negative operand of a root closer to zero than this is taken for a rounding error


def suspect_of(event: Event, form: str, first_step: bool = True, largest_input: float = 0.0) -> str:
    """The slug of the suspect for an origin `event` of the given `form`. `first_step` says that no step was taken yet,
    `largest_input` is the largest magnitude in the batch."""
    if event.kind == "external":
        found = EXTERNAL.get(event.source_kind, "bad_data")
        return "poisoned_state" if found == "bad_init_or_uninitialised" and not first_step else found
    if event.dtype in HALF and event.reading is not None and event.reading.fits_wider:
        return "fp16_overflow_or_no_scaler"
    if form == "0*inf" and event.phase == "backward":
        return "hidden_gradient"
    if form == "overflow":
        return _overflow(event, largest_input)
    if form == "sqrt(<0)":
        return "cancellation" if _rounding(event) else "log_or_div_of_zero"
    if form in ("0/0 (underflow)", "x/0: underflow") and event.dtype not in HALF:
        return "softmax_or_exp_overflow"
    return forms.suspect(form)


def _overflow(event: Event, largest_input: float) -> str:
    if forms.known(event.op).exponential or forms.known(event.node).exponential:
        return "softmax_or_exp_overflow"
    name = type(event.module).__name__.lower() + (event.call.name if event.call else "")
    if event.phase in ("backward", "optimizer") or any(r in name for r in RECURRENT):
        return "exploding_gradients"
    return "unscaled_inputs_or_targets" if largest_input > 1e4 else "lr_too_high"


def _rounding(event: Event) -> bool:
    operand = event.reading.operands.get("self") if event.reading else None
    terms = max((size for _, size in event.magnitudes), default=0.0)
    return isinstance(operand, float) and -max(CANCELLED, TERMS * terms * torch.finfo(event.dtype).eps) < operand < 0
