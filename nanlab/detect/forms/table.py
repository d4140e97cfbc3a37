"""The one table of forms: what each is called, what it means in a plain sentence, and which suspect it points to.

A form is how a non-finite value came out of finite ones. What stands behind a colon narrows a row down to a cause
with a sentence and a suspect of its own; a report shows the part before it.
"""

import re

FORMS: dict[str, tuple[str, str]] = {
    "0/0": ("zero divided by zero is NaN", "log_or_div_of_zero"),
    "0/0 (underflow)": ("a divisor, and what it divides, had underflowed to zero", "fp16_overflow_or_no_scaler"),
    "0/0 (mean of empty)": ("an average over no elements is zero divided by zero", "empty_reduction"),
    "0/0: all targets ignored": ("an average over no counted target is zero divided by zero", "empty_reduction"),
    "0/0: nothing counted": ("an average that counts nothing is zero divided by zero", "empty_reduction"),
    "0/0: too few elements": ("a deviation needs more elements than its correction", "empty_reduction"),
    "x/0": ("a finite number divided by zero is infinite", "log_or_div_of_zero"),
    "x/0: underflow": ("a divisor had underflowed to zero", "fp16_overflow_or_no_scaler"),
    "1/subnormal overflow": ("the inverse of a subnormal number exceeds the format", "softmax_or_exp_overflow"),
    "inf/inf": ("infinity divided by infinity is NaN", "softmax_or_exp_overflow"),
    "0*inf": ("zero times infinity is NaN", "log_or_div_of_zero"),
    "inf-inf": ("infinity minus infinity is NaN", "softmax_or_exp_overflow"),
    "inf-inf: fully masked": ("a softmax over nothing but -inf is -inf minus -inf", "fully_masked_attention"),
    "log(0)": ("the logarithm of zero is -inf", "log_or_div_of_zero"),
    "log(0): underflow": ("a probability had underflowed to zero before its logarithm", "softmax_or_exp_overflow"),
    "log(0): no alignment": ("there are fewer frames than labels need, so no alignment has a probability", "bad_data"),
    "log(<0)": ("the logarithm of a negative number is NaN", "log_or_div_of_zero"),
    "sqrt(<0)": ("the root of a negative number is NaN", "cancellation"),
    "pow(<0, fraction)": ("a negative number to a fractional power is NaN", "log_or_div_of_zero"),
    "overflow": ("the result is larger than the format can hold", "lr_too_high"),
    "singular matrix": ("the matrix has no inverse", "log_or_div_of_zero"),
    "function(inf)": ("the function has no value at infinity", "lr_too_high"),
    "outside domain": ("the argument lies outside the function's domain", "log_or_div_of_zero"),
    "pole": ("the function is infinite at this argument", "log_or_div_of_zero"),
    "derivative": ("the value is finite and its derivative is not", "hidden_gradient"),
    "nan_in": ("the value was NaN before the step used it", "bad_data"),
    "inf_in": ("the value was infinite before the step used it", "bad_data"),
    "inf written": ("an infinity that the program writes on purpose reached the result", "log_or_div_of_zero"),
    "nan written": ("a NaN that the program writes on purpose reached the result", "bad_init_or_uninitialised"),
    "uninitialised memory": ("the memory was allocated and never written", "bad_init_or_uninitialised"),
    "unknown": ("the operands do not explain the value", "hardware_or_kernel_bug"),
}

_DERIVATIVE = re.compile(r"deriv_of_\w+_at_\S+")
_CALL = re.compile(r"\w+\((>|<|±|-|\d)[^)]*\)")
_INF = re.compile(r"\w+\(-?inf\)")
_POLES = {"atanh(1)", "erfinv(1)", "lgamma(<=0)", "digamma(0)"}


def row(form: str) -> str:
    """The row of the table that `form` belongs to: itself, or the general row of ``deriv_of_acos_at_1``,
    ``acos(>1)`` and the like, or the form without its note."""
    if form in FORMS:
        return form
    if _DERIVATIVE.fullmatch(form):
        return "derivative"
    if form in _POLES:
        return "pole"
    if _INF.fullmatch(form):
        return "function(inf)"
    bare = form.split(": ")[0].split(" (")[0]
    return bare if bare in FORMS else "outside domain" if _CALL.fullmatch(form) else "unknown"


def sentence(form: str) -> str:
    """The plain sentence for `form`."""
    return FORMS[row(form)][0]


def suspect(form: str) -> str:
    """The suspect that `form` points to when nothing else is known."""
    return FORMS[row(form)][1]


def public(form: str) -> str:
    """What a report calls `form`: without what narrows it down."""
    return form.split(": ")[0]
