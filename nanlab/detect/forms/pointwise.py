"""Forms of operations that work element by element: read from the operands' values at the element."""

from __future__ import annotations

import math

from nanlab.detect.forms.operation import Finding, Operation, is_inf, is_nan, subnormal
from nanlab.detect.forms.rules import rule


@rule("div", "true_divide", "floor_divide", "remainder", "fmod")
def division(op: Operation) -> Finding | None:
    return quotient(op, op.at("self"), op.at("other"))


def quotient(op: Operation, top: float | None, bottom: float | None) -> Finding | None:
    """The form of ``top / bottom``. A `top` that was overwritten unseen is judged by the result."""
    operands = {"numerator": top, "denominator": bottom}
    if bottom == 0:
        zero = top == 0 if top is not None else is_nan(op.result())
        return op.found("0/0" if zero else "x/0", **operands)
    if is_inf(top) and is_inf(bottom):
        return op.found("inf/inf", **operands)
    if is_inf(op.result()) and not is_inf(top):
        return op.found("1/subnormal overflow" if subnormal(bottom, op.out.dtype) else "overflow", **operands)
    return None


@rule("reciprocal")
def reciprocal(op: Operation) -> Finding | None:
    x = op.at("self")
    if x == 0:
        return op.found("x/0", numerator=1, denominator=x)
    return op.found("1/subnormal overflow") if subnormal(x, op.out.dtype) else None


@rule("mul")
def multiplication(op: Operation) -> Finding | None:
    return product(op, op.at("self"), op.at("other"))


def product(op: Operation, a: float | None, b: float | None) -> Finding | None:
    """The form of ``a * b``."""
    if is_nan(op.result()) and (is_inf(a) or is_inf(b)) and (a == 0 or b == 0 or a is None or b is None):
        return op.found("0*inf", self=a, other=b)
    return op.found("overflow", self=a, other=b) if is_inf(op.result()) and not is_inf(a) and not is_inf(b) else None


@rule("add", "sub", "rsub", "lerp", "logaddexp", "logaddexp2")
def addition(op: Operation) -> Finding | None:
    a, b = op.at("self"), op.at("other", "end")
    if is_inf(op.at("alpha")):
        return product(op, b, op.at("alpha"))
    if is_nan(op.result()) and (is_inf(a) or is_inf(b)):
        return op.found("inf-inf")
    return op.found("overflow") if is_inf(op.result()) and not is_inf(a) and not is_inf(b) else None


@rule("addcmul")
def add_product(op: Operation) -> Finding | None:
    a, b = op.at("tensor1"), op.at("tensor2")
    if is_inf(op.result()) and not is_inf(a) and not is_inf(b):
        return op.found("overflow")
    return product(op, a, b)


@rule("addcdiv")
def add_quotient(op: Operation) -> Finding | None:
    return quotient(op, op.at("tensor1"), op.at("tensor2"))


@rule("log", "log2", "log10", "log1p", "xlogy", "logit", "special_xlog1py")
def logarithm(op: Operation) -> Finding | None:
    x = op.at("other") if op.name.startswith(("xlogy", "special")) else op.at("self")
    if x is None:
        return None
    if op.name in ("log1p", "special_xlog1py"):
        x = x + 1
    if op.name == "logit" and x >= 1:
        x = 1 - x
    return op.found("log(0)" if x == 0 else "log(<0)") if x <= 0 else op.found("overflow")


@rule("sqrt", "rsqrt")
def root(op: Operation) -> Finding | None:
    x = op.at("self")
    if x is None or is_nan(x):
        return None
    if x < 0:
        return op.found("sqrt(<0)")
    return op.found("x/0", note="the inverse root of zero") if x == 0 else op.found("overflow")


@rule("pow", "float_power")
def power(op: Operation) -> Finding | None:
    base, exponent = op.at("self"), op.at("exponent")
    if base is None or exponent is None or is_nan(base):
        return None
    if base < 0 and exponent != math.floor(exponent):
        return op.found("pow(<0, fraction)")
    return op.found("x/0", note="zero to a negative power") if base == 0 and exponent < 0 else op.found("overflow")


@rule("exp", "exp2", "expm1", "sinh", "cosh", "square", "special_i0", "ldexp", "cumsum", "softplus", "elu",
      "celu", "selu")  # fmt: skip
def growth(op: Operation) -> Finding | None:
    return op.found("overflow") if is_inf(op.result()) and not is_inf(op.at("self")) else None


@rule("acos", "asin", "arccos", "arcsin", "acosh", "atanh", "erfinv")
def inverse(op: Operation) -> Finding | None:
    x = op.at("self")
    if x is None:
        return None
    if op.name == "acosh":
        return op.found("acosh(<1)")
    return op.found(f"{op.name}({'1' if abs(x) == 1 else '>1'})")


@rule("lgamma", "digamma", "polygamma", "mvlgamma")
def gamma(op: Operation) -> Finding | None:
    x = op.at("self")
    return op.found(f"{op.name}(<=0)" if x is not None and x <= 0 else "overflow")


@rule("sin", "cos", "tan", "sinc")
def periodic(op: Operation) -> Finding | None:
    return op.found(f"{op.name}(inf)") if is_inf(op.at("self")) else None


@rule("silu", "gelu", "mish", "hardswish", "glu")
def gate(op: Operation) -> Finding | None:
    return op.found("0*inf") if is_inf(op.at("self")) else None


@rule("_to_copy", "copy", "to", "_to_dense")
def cast(op: Operation) -> Finding | None:
    x = op.at("src", "self")
    note = f"cast to {str(op.out.dtype).removeprefix('torch.')}"
    return op.found("overflow", note=note) if is_inf(op.result()) and not is_inf(x) else None
