"""Forms of operations that work element by element: read from the operands' values at the element."""

from __future__ import annotations

import math

from torch import Tensor

from nanlab.detect.forms.known import note, rule
from nanlab.detect.forms.operation import Operation, Reading, Value, is_inf, is_nan, subnormal

note("div", "divide", "true_divide", "__truediv__", "__itruediv__", "__rtruediv__", "floor_divide", "__floordiv__",
     "__rfloordiv__", "addcdiv", divides=True)  # fmt: skip


@rule("div", "true_divide", "floor_divide", "remainder", "fmod")
def division(op: Operation) -> Reading | None:
    return quotient(op, op.at("self"), op.at("other"))


def quotient(op: Operation, top: Value, bottom: Value) -> Reading | None:
    """The form of ``top / bottom``. A `top` that was overwritten unseen is judged by the result."""
    operands = {"numerator": top, "denominator": bottom}
    if bottom == 0:
        zero = top == 0 if top is not None else is_nan(op.result())
        counted = "0/0: nothing counted" if is_count(op.get("other", "tensor2")) else "0/0"
        return op.found(counted if zero else "x/0", **operands)
    if is_inf(top) and is_inf(bottom):
        return op.found("inf/inf", **operands)
    if is_inf(op.result()) and not is_inf(top):
        return op.found("1/subnormal overflow" if subnormal(bottom, op.out.dtype) else "overflow", **operands)
    return None


def is_count(divisor: object) -> bool:
    """Whether a divisor is how many there are of something: an integer."""
    return isinstance(divisor, int) or (isinstance(divisor, Tensor) and not divisor.is_floating_point()
                                        and not divisor.is_complex())  # fmt: skip


@rule("reciprocal", edge="0")
def reciprocal(op: Operation) -> Reading | None:
    x = op.at("self")
    if x == 0:
        return op.found("x/0", numerator=1, denominator=x)
    return op.found("1/subnormal overflow") if subnormal(x, op.out.dtype) else None


@rule("mul")
def multiplication(op: Operation) -> Reading | None:
    return product(op, op.at("self"), op.at("other"))


def product(op: Operation, a: Value, b: Value) -> Reading | None:
    """The form of ``a * b``."""
    if is_nan(op.result()) and (is_inf(a) or is_inf(b)) and (a == 0 or b == 0 or a is None or b is None):
        return op.found("0*inf", self=a, other=b)
    return op.found("overflow", self=a, other=b) if is_inf(op.result()) and not is_inf(a) and not is_inf(b) else None


note("add", "clamp", "clamp_min", "maximum", epsilon=True)
note("add", "sub", "mul", gentle=True)


@rule("add", "sub", "rsub", "lerp", "logaddexp", "logaddexp2")
def addition(op: Operation) -> Reading | None:
    a, b = op.at("self"), op.at("other", "end")
    if is_inf(op.at("alpha")):
        return product(op, b, op.at("alpha"))
    if is_nan(op.result()) and (is_inf(a) or is_inf(b)):
        return op.found("inf-inf")
    return op.found("overflow") if is_inf(op.result()) and not is_inf(a) and not is_inf(b) else None


@rule("addcmul")
def add_product(op: Operation) -> Reading | None:
    a, b = op.at("tensor1"), op.at("tensor2")
    if is_inf(op.result()) and not is_inf(a) and not is_inf(b):
        return op.found("overflow")
    return product(op, a, b)


@rule("addcdiv")
def add_quotient(op: Operation) -> Reading | None:
    return quotient(op, op.at("tensor1"), op.at("tensor2"))


@rule("log", "log2", "log10", "xlogy", "logit", edge="0")
@rule("log1p", edge="-1")
@rule("special_xlog1py")
@rule("special_entr", edge="0", edge_of="entr")
def logarithm(op: Operation) -> Reading | None:
    x = op.at("other") if op.name in ("xlogy", "special_xlog1py") else op.at("self")
    if x is None:
        return None
    if op.name in ("log1p", "special_xlog1py"):
        x = x + 1
    if op.name == "logit" and x >= 1:
        x = 1 - x
    return op.found("log(0)" if x == 0 else "log(<0)") if x <= 0 else op.found("overflow")


@rule("sqrt", "rsqrt", edge="0")
def root(op: Operation) -> Reading | None:
    x = op.at("self")
    if x is None or is_nan(x):
        return None
    if x < 0:
        return op.found("sqrt(<0)")
    return op.found("x/0", note="the inverse root of zero") if x == 0 else op.found("overflow")


@rule("pow", edge="0", vanishes=True, keeps_zero=True)
@rule("float_power")
def power(op: Operation) -> Reading | None:
    base, exponent = op.at("self"), op.at("exponent")
    if base is None or exponent is None or is_nan(base):
        return None
    if base < 0 and exponent != math.floor(exponent):
        return op.found("pow(<0, fraction)")
    return op.found("x/0", note="zero to a negative power") if base == 0 and exponent < 0 else op.found("overflow")


note("exp", "exp2", "special_expit", "sigmoid", vanishes=True)
note("sigmoid", probability=True)


@rule("exp", "exp2", "expm1", "sinh", "cosh", "i0", "special_i0", "special_i1", "special_modified_bessel_i0",
      "special_modified_bessel_i1", exponential=True)  # fmt: skip
@rule("square", vanishes=True, keeps_zero=True)
@rule("ldexp", "cumsum", "softplus", "elu", "celu", "selu")
def growth(op: Operation) -> Reading | None:
    return op.found("overflow") if is_inf(op.result()) and not is_inf(op.at("self")) else None


@rule("acos", "asin", "arccos", "arcsin", "atanh", "erfinv", edge="1")
@rule("acosh", "arccosh", edge="1", safe=2.0)
def inverse(op: Operation) -> Reading | None:
    x = op.at("self")
    if x is None:
        return None
    if op.name in ("acosh", "arccosh"):
        return op.found("acosh(<1)")
    return op.found(f"{op.name}({'1' if abs(x) == 1 else '>1'})")


note("lgamma", edge="0")


@rule("lgamma", "digamma", "polygamma", "mvlgamma")
def gamma(op: Operation) -> Reading | None:
    x = op.at("self")
    return op.found(f"{op.name}(<=0)" if x is not None and x <= 0 else "overflow")


@rule("sin", "cos", "tan", "sinc")
def periodic(op: Operation) -> Reading | None:
    return op.found(f"{op.name}(inf)") if is_inf(op.at("self")) else None


@rule("silu", "gelu", "mish", "hardswish", "glu")
def gate(op: Operation) -> Reading | None:
    return op.found("0*inf") if is_inf(op.at("self")) else None


note("_to_copy", shown="to")


@rule("_to_copy", "copy", "to", "_to_dense")
def cast(op: Operation) -> Reading | None:
    x = op.at("src", "self")
    note = f"cast to {str(op.out.dtype).removeprefix('torch.')}"
    return op.found("overflow", note=note) if is_inf(op.result()) and not is_inf(x) else None
