"""What a number becomes in boxes of different size: number formats in everyday words. Used by lesson 04."""

import math

from nanlab.formats import BF16, FP16, FP32
from nanlab.plots import Cell, Grid

BOXES = {"small box (fp16)": FP16, "coarse box (bf16)": BF16, "large box (fp32)": FP32}
_LARGEST = {FP16: "65,504", BF16: "339, then 36 zeros", FP32: "34, then 37 zeros"}


def boxes(number: float, then_add: float = 0) -> Grid:
    """`number`, and `then_add` added to it inside the box, in each of ``BOXES``, beside the largest number it holds."""
    asked = plain(number) if not then_add else f"{plain(number)} + {plain(then_add)}"
    rows = [[Cell("switches", "head"), Cell("largest number", "head", 2), Cell(f"{asked} becomes", "head", 3)]]
    for fmt in BOXES.values():
        held = fmt.round(fmt.round(number) + then_add)
        tone = "bad" if not math.isfinite(held) or (held == 0) != (number + then_add == 0) else "plain"
        rows.append([Cell(str(fmt.bits)), Cell(_LARGEST[fmt], "plain", 2), Cell(plain(held), tone, 3)])
    lost = any(row[-1].tone == "bad" for row in rows)
    note = "Bold: the number is lost." if lost else "Each box holds a number."
    return Grid(f"{asked} in three boxes", rows, ["", *BOXES], note=note)


def plain(number: float) -> str:
    """`number` as a person writes it: ``65,520``, ``0.00000006``, ``inf``; five digits at most."""
    if not math.isfinite(number) or number == 0:
        return f"{number:g}"
    if abs(number) >= 1e15:
        return f"{number:.3g}"
    digits = max(0, 4 - math.floor(math.log10(abs(number))))
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
