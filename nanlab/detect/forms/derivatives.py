"""Forms of backward operations: where a function is finite and its derivative is not."""

from __future__ import annotations

import re

from nanlab.detect.forms.operation import Finding, Operation, subnormal

EDGES = {  # graph node -> (function, where its derivative is infinite)
    "Sqrt": ("sqrt", "0"),
    "Rsqrt": ("rsqrt", "0"),
    "Acos": ("acos", "1"),
    "Asin": ("asin", "1"),
    "Acosh": ("acosh", "1"),
    "Atanh": ("atanh", "1"),
    "Erfinv": ("erfinv", "1"),
    "Pow": ("pow", "0"),
    "Log": ("log", "0"),
    "Log2": ("log2", "0"),
    "Log10": ("log10", "0"),
    "Log1P": ("log1p", "-1"),
    "Xlogy": ("xlogy", "0"),
    "Logit": ("logit", "0"),
    "Atan2": ("atan2", "0"),
    "Reciprocal": ("reciprocal", "0"),
    "Norm": ("norm", "0"),
    "LinalgVectorNorm": ("norm", "0"),
    "Std": ("std", "0"),
    "StdMean": ("std", "0"),
    "Cdist": ("cdist", "0"),
    "Prod": ("prod", "0"),
    "Cumprod": ("cumprod", "0"),
    "Lgamma": ("lgamma", "0"),
    "Hypot": ("hypot", "0"),
    "Abs": ("abs", "0"),
    "Angle": ("angle", "0"),
    "Sgn": ("sgn", "0"),
    "WeightNormInterface": ("weight_norm", "0"),
    "LinalgSvd": ("svd", "equal_values"),
    "LinalgEigh": ("eigh", "equal_values"),
    "LinalgEig": ("eig", "equal_values"),
    "LinalgQr": ("qr", "rank_loss"),
}


def derivative(op: Operation) -> Finding | None:
    """The form of an operation that runs inside a graph node, when the node's function has a singular edge there."""
    name = re.sub(r"Backward\w*$", "", op.node or "")
    if name not in EDGES:
        return None
    function, edge = EDGES[name]
    if not at_edge(op, name):
        return None
    inner = op.at("other", "exponent")
    shown = {"gradient": op.at("self"), "divisor": inner} if op.name == "div" else {}
    return op.found(f"deriv_of_{function}_at_{edge}", **shown)


def at_edge(op: Operation, name: str) -> bool:
    """Whether what this operation divides by (or takes the root or a power of) is zero: the function's edge."""
    if op.name in ("div", "true_divide"):
        bottom = op.at("other")
        return bottom == 0
    if op.name in ("reciprocal", "rsqrt", "pow", "log"):
        return op.at("self") == 0
    return not subnormal(op.at("self"), op.out.dtype) and name.startswith(("Linalg", "Prod", "Cumprod", "Cdist"))
