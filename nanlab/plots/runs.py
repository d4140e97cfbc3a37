"""Runs as curves: the limit of a number format as a line, and several runs on one pair of axes."""

from collections.abc import Mapping, Sequence

import torch

from nanlab.plots.chart import Chart
from nanlab.plots.description import Limit, Series

_MAXIMA = {  # torch.finfo(dtype).max, in the words of the lessons
    "float16": "fp16 max 65,504",
    "bfloat16": "bf16 max 3.39e+38",
    "float32": "fp32 max 3.403e+38",
    "float64": "fp64 max 1.798e+308",
}


def format_limit(dtype: torch.dtype | str) -> Limit:
    """The largest value of `dtype` ("float16", "bfloat16", "float32", "float64") as a line; KeyError for others."""
    name = str(dtype).removeprefix("torch.")
    return Limit(torch.finfo(getattr(torch, name)).max, _MAXIMA[name])


def compare_runs(runs: Mapping[str, Sequence[float]], title: str, y_label: str = "loss", **options) -> Chart:
    """Several curves by name on one log axis, such as before and after a fix; `options` go to `Chart`."""
    series = tuple(Series(name, values) for name, values in runs.items())
    return Chart(title, "step", y_label, series, **{"y_log": True, **options})
