"""Numbers as people type them: ``1,000``, ``1_000``, ``1e-3``, ``inf``, and − as well as -."""

import re

_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?(e[+-]?\d+)?", re.I)


def parse(text: str) -> float:
    """The number in `text`; ValueError, with a sentence for who typed it, where there is none or two can be meant."""
    typed = text.strip().replace("−", "-")
    if not typed:
        raise ValueError("type a number")
    if "," in typed and not _GROUPED.fullmatch(typed):
        raise ValueError(f"“{text.strip()[:20]}” could mean two numbers: write a point before the decimals")
    try:
        return float(typed.replace(",", "").replace("_", ""))
    except ValueError:
        raise ValueError(f"“{text.strip()[:20]}” is not a number") from None
