"""Charts of training runs: what each failure's history looks like, with the format's limit and the first bad step."""

from collections.abc import Mapping, Sequence

import torch

from nanlab.failures.run import History
from nanlab.plots.chart import Chart, Limit, Mark, Series

_MAXIMA = {  # torch.finfo(dtype).max, in the words of the lessons
    "float16": "fp16 max 65,504",
    "bfloat16": "bf16 max 3.39e+38",
    "float32": "fp32 max 3.403e+38",
    "float64": "fp64 max 1.798e+308",
}
_CURVES = {
    "loss": "loss",
    "gradient_norm": "gradient norm",
    "largest_activation": "largest activation",
    "largest_weight": "largest weight",
}


def format_limit(dtype: torch.dtype | str) -> Limit:
    """The largest value of `dtype` ("float16", "bfloat16", "float32", "float64") as a line; KeyError for others."""
    name = str(dtype).removeprefix("torch.")
    return Limit(torch.finfo(getattr(torch, name)).max, _MAXIMA[name])


def bad_mark(history: History) -> tuple[Mark, ...]:
    """The first bad step of `history` as a mark, such as "loss inf at step 3"; nothing for a finite run."""
    step = history.first_bad_step
    if step is None:
        return ()
    record = {"loss": history.loss, "gradient": history.gradient_norm}
    record |= {"activation": history.largest_activation, "weight": history.largest_weight}
    return (Mark(step, f"{history.first_bad_where} {record[history.first_bad_where][step]:g} at step {step}"),)


def run_chart(
    history: History,
    title: str = "Loss, step by step",
    curves: Sequence[str] = ("loss",),
    dtype: torch.dtype | str | None = torch.float32,
    digits: int = 3,
) -> Chart:
    """A run on a log axis: `curves` are fields of `History`, `dtype` draws that format's limit (None: no line)."""
    series = tuple(Series(_CURVES[name], getattr(history, name)) for name in curves)
    label = ", ".join(_CURVES[name] for name in curves) if len(curves) < 3 else "value"
    limits = () if dtype is None else (format_limit(dtype),)
    return Chart(title, "step", label, series, limits=limits, marks=bad_mark(history), y_log=True, digits=digits)


def compare_runs(runs: Mapping[str, Sequence[float]], title: str, y_label: str = "loss", **options) -> Chart:
    """Several curves by name on one log axis, such as before and after a fix; `options` go to `Chart`."""
    series = tuple(Series(name, values) for name, values in runs.items())
    return Chart(title, "step", y_label, series, **{"y_log": True, **options})
