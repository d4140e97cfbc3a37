"""The one table of forms: what each is called, what it means in a plain sentence, and which suspect it points to."""

FORMS: dict[str, tuple[str, str]] = {
    "0/0": ("zero divided by zero is NaN", "log_or_div_of_zero"),
    "x/0": ("a finite number divided by zero is infinite", "log_or_div_of_zero"),
    "inf/inf": ("infinity divided by infinity is NaN", "softmax_or_exp_overflow"),
    "0*inf": ("zero times infinity is NaN", "hidden_gradient"),
    "inf-inf": ("infinity minus infinity is NaN", "softmax_or_exp_overflow"),
    "log(0)": ("the logarithm of zero is -inf", "log_or_div_of_zero"),
    "log(<0)": ("the logarithm of a negative number is NaN", "log_or_div_of_zero"),
    "sqrt(<0)": ("the root of a negative number is NaN", "cancellation"),
    "overflow": ("the result is larger than the format can hold", "lr_too_high"),
    "nan_in": ("the value was NaN before this step's first operation", "bad_data"),
    "inf_in": ("the value was infinite before this step's first operation", "bad_data"),
    "uninitialised": ("the memory was never written", "bad_init_or_uninitialised"),
    "unknown": ("the operation made a value that is not finite", "hardware_or_kernel_bug"),
}


def sentence(form: str) -> str:
    """The plain sentence for `form`."""
    return FORMS.get(form, FORMS["unknown"])[0]
