"""The function that a node of the graph, or an operation, belongs to, by torch's own list of operations."""

from __future__ import annotations

import re
from functools import cache

import torch

from nanlab.detect.forms.known import known

NODE = re.compile(r"(\w+?)Backward(s|\d+|AutogradNestedTensor\d+|AutogradCUDA\d+)(_copy)?")


def function_of(name: str) -> str:
    """What a report calls the operation or node `name`: ``"avg_pool2d"`` for ``"AvgPool2DBackward0"``, ``"div"`` for
    ``"div_.Tensor"``. A node that belongs to none of torch's operations, as that of a custom `autograd.Function`, keeps
    its name."""
    match = NODE.fullmatch(name)
    if match is None:
        bare = name.split(".")[0]
        return known(bare).shown or bare.rstrip("_").removeprefix("_foreach_").lstrip("_")
    key = match[1].lower()
    spellings = (key, f"{key}forward", key.removesuffix("backward"), f"{key.removesuffix('backward')}forward")
    found = next((f for k in spellings if (f := _functions().get(k))), name)
    return known(found).shown or found


@cache
def _functions() -> dict[str, str]:
    """Name without underscores, as nodes write it in camel case -> torch's name; of several spellings the plainest."""
    names = [name.removeprefix("aten::").split(".")[0] for name in torch._C._dispatch_get_all_op_names()
             if name.startswith("aten::")]  # fmt: skip
    found: dict[str, str] = {}
    for name in sorted(set(names), key=lambda name: (name.startswith("_"), name.endswith("_"), name)):
        found.setdefault(name.replace("_", ""), name.strip("_"))
    return found
