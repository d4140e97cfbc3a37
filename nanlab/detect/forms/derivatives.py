"""Forms of backward operations: where a function is finite and its derivative is not."""

from __future__ import annotations

from nanlab.detect.forms.known import known, note
from nanlab.detect.forms.operation import Operation, Reading, subnormal

note("abs", "angle", "atan2", "hypot", "sgn", edge="0")
note("cdist", edge="0", deep=True)


def derivative(op: Operation) -> Reading | None:
    """The form of an operation that runs inside a graph node, when the node's function has a singular edge there."""
    function = known(op.node)
    if not function.edge or not at_edge(op, function.deep):
        return None
    shown = {"gradient": op.at("self"), "divisor": op.at("other", "exponent")} if op.name == "div" else {}
    return op.found(f"deriv_of_{function.edge_of}_at_{function.edge}", **shown)


def at_edge(op: Operation, deep: bool) -> bool:
    """Whether what this operation divides by (or takes the root or a power of) is zero: the function's edge."""
    if op.name in ("div", "true_divide"):
        return op.at("other") == 0
    if op.name in ("reciprocal", "rsqrt", "pow", "log"):
        return op.at("self") == 0
    return deep and not subnormal(op.at("self"), op.out.dtype)
