"""Number formats: range, precision, bit fields, and where common operations overflow.

Taught in lesson 04. Everything follows from two numbers, the exponent's and the mantissa's width; tests hold it against
``torch.finfo``. Sources: IEEE 754-2019; Kalamkar et al., A Study of BFLOAT16 for Deep Learning Training, 2019 (bf16);
Micikevicius et al., FP8 Formats for Deep Learning, 2022 (E4M3, which gives up infinity for range, and E5M2).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple


class Bits(NamedTuple):
    """The bit fields of one value, as strings of 0 and 1."""

    sign: str
    exponent: str
    mantissa: str

    def __str__(self) -> str:
        return " ".join(self)


@dataclass(frozen=True)
class Format:
    """A binary floating-point format of one sign bit, `exponent_bits` and `mantissa_bits`.

    `has_infinity` is False for fp8 E4M3 alone: its top exponent holds numbers, and only all ones is nan.
    """

    name: str
    torch_name: str  # the attribute of torch: getattr(torch, torch_name)
    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool = True

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def max(self) -> float:
        """The largest finite value."""
        if self.has_infinity:
            return (2 - 2.0**-self.mantissa_bits) * 2.0**self.bias
        return (2 - 2 * 2.0**-self.mantissa_bits) * 2.0 ** (self.bias + 1)

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        return 2.0 ** (1 - self.bias - self.mantissa_bits)

    @property
    def eps(self) -> float:
        """The gap between 1 and the next larger value."""
        return 2.0**-self.mantissa_bits

    @property
    def overflows_from(self) -> float:
        """The smallest magnitude that rounds to infinity (to nan in E4M3): halfway past `max`."""
        return self.max + (self.max - self.down(self.max)) / 2

    @property
    def exp_limit(self) -> float:
        """exp overflows above this: the logarithm of `max`, as a real number (the format may not hold it)."""
        return math.log(self.max)

    @property
    def square_limit(self) -> float:
        """x*x overflows above this, up to rounding."""
        return math.sqrt(self.max)

    def sum_limit(self, count: int) -> float:
        """A sum of `count` equal values overflows when each is above this, if it is added up in this format."""
        return self.max / count

    def round(self, value: float) -> float:
        """`value` rounded to this format: to nearest, ties to even, infinite (nan in E4M3) past the range."""
        if not math.isfinite(value) or value == 0:
            return value if math.isnan(value) or value == 0 or self.has_infinity else math.nan
        exponent = max(math.frexp(value)[1] - 1, 1 - self.bias)
        step = 2.0 ** (exponent - self.mantissa_bits)
        rounded = round(value / step) * step if self.mantissa_bits < 52 else value
        if abs(rounded) > self.max:
            return math.copysign(math.inf, value) if self.has_infinity else math.nan
        return math.copysign(rounded, value)

    def holds_epsilon(self, value: float) -> bool:
        """Whether `value`, meant to keep a denominator off zero, is still above zero in this format."""
        return self.round(value) > 0

    def up(self, value: float) -> float:
        """The next larger value of the format; infinity (nan in E4M3) after `max`."""
        return self._neighbour(value, 1)

    def down(self, value: float) -> float:
        """The next smaller value of the format."""
        return self._neighbour(value, -1)

    def _neighbour(self, value: float, direction: int) -> float:
        value = self.round(value)
        if math.isnan(value) or value == math.copysign(math.inf, direction):
            return value
        if value == 0:
            return math.copysign(self.smallest_subnormal, direction)
        magnitude = self._code(abs(value)) + (1 if (value > 0) == (direction > 0) else -1)
        return math.copysign(self._decode(magnitude), value)

    def bit_fields(self, value: float) -> Bits:
        """Sign, exponent and mantissa bits of `value` rounded to this format."""
        rounded = self.round(value)
        sign = "1" if math.copysign(1, value) < 0 else "0"
        code = format(self._code(abs(rounded)), f"0{self.bits - 1}b")
        return Bits(sign, code[: self.exponent_bits], code[self.exponent_bits :])

    def from_bits(self, bits: str) -> float:
        """The value of `bits`, most significant first; blanks are ignored. ValueError on another length."""
        digits = bits.replace(" ", "")
        if len(digits) != self.bits or set(digits) - {"0", "1"}:
            raise ValueError(f"{self.name} takes {self.bits} binary digits, got {bits!r}")
        value = self._decode(int(digits[1:], 2))
        return -value if digits[0] == "1" else value

    def _code(self, magnitude: float) -> int:
        """The bits of a non-negative value of the format, without the sign, as an integer."""
        top = ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        if math.isnan(magnitude):
            return top | (1 << (self.mantissa_bits - 1) if self.has_infinity else (1 << self.mantissa_bits) - 1)
        if math.isinf(magnitude):
            return top
        if magnitude < self.smallest_normal:
            return round(magnitude / self.smallest_subnormal)
        exponent = math.frexp(magnitude)[1] - 1
        mantissa = round((magnitude / 2.0**exponent - 1) * 2**self.mantissa_bits)
        return ((exponent + self.bias) << self.mantissa_bits) + mantissa

    def _decode(self, code: int) -> float:
        exponent, mantissa = code >> self.mantissa_bits, code & ((1 << self.mantissa_bits) - 1)
        top = (1 << self.exponent_bits) - 1
        if exponent == top and self.has_infinity:
            return math.nan if mantissa else math.inf
        if exponent == top and mantissa == (1 << self.mantissa_bits) - 1:
            return math.nan
        if exponent == 0:
            return mantissa * self.smallest_subnormal
        return (1 + mantissa * self.eps) * 2.0 ** (exponent - self.bias)


FP64 = Format("fp64", "float64", 11, 52)
FP32 = Format("fp32", "float32", 8, 23)
BF16 = Format("bf16", "bfloat16", 8, 7)
FP16 = Format("fp16", "float16", 5, 10)
FP8_E5M2 = Format("fp8 E5M2", "float8_e5m2", 5, 2)
FP8_E4M3 = Format("fp8 E4M3", "float8_e4m3fn", 4, 3, has_infinity=False)

FORMATS = (FP64, FP32, BF16, FP16, FP8_E5M2, FP8_E4M3)


def get(name: object) -> Format:
    """The format of a torch dtype, or the one called `name` (``"fp16"``, ``"float16"``, ``torch.float16``)."""
    wanted = str(name).removeprefix("torch.")
    for found in FORMATS:
        if wanted in (found.name, found.torch_name):
            return found
    raise KeyError(f"no format is called {wanted!r}; there are: {', '.join(f.name for f in FORMATS)}")
