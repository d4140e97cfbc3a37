"""Numbers that a line states in words: ``grad finite: False``, ``any nan = True``, ``loss None``."""

import re

from nanlab.doctor.readers.event import Value
from nanlab.doctor.readers.roles import role_of

_NAME = r"\b((?:[a-z][a-z_./-]{0,30} ){0,2}[a-z][\w./-]{0,30}?)"
_FINITE = re.compile(_NAME + r"[ _.]?(?:is |are |all |is_)?finite[\"']?[ =:(]{1,3}(?:false|0(?![\d./])|no\b)")
_HAS_NAN = re.compile(
    _NAME + r"['\"]?[ :.,(]{1,3}(?:any |has |is )?(?:any_|has_|is)?(nan|inf)s?\b(?:\(\))?(?:\.any\(\))?"
    r"[\"']?[ =:]{1,3}true\b"
)
_HOLLOW = re.compile(r"\b((?:[a-z]\w{0,20}[_/ .])?loss)[\"']?(?:[ ]?[=:][ ]?|[ ])[\"']?(?:none|null)\b(?!_)")
_STEM = re.compile(r"(?:^|[ _])(?:module|layer|output|first|with|of|in|the)(?=$|[ _])")


def stated(low: str) -> list[Value]:
    """The values that are not finite by the line's own words. ``null`` and ``None`` count only where `onset` sees that
    numbers stood there before."""
    found = []
    if "finite" in low:
        found += [_value(m[1], "nan", m[0]) for m in _FINITE.finditer(low)]
    if "true" in low:
        found += [_value(m[1], m[2], m[0]) for m in _HAS_NAN.finditer(low)]
    if "none" in low or "null" in low:
        found += [_value(m[1], "nan", "null") for m in _HOLLOW.finditer(low)]
    return found


def _value(name: str, kind: str, raw: str) -> Value:
    name = _STEM.sub(" ", name).strip(" :") or "value"
    role = role_of(name)
    role = "state" if role in {"other", "unnamed", "metric"} else role
    return Value(name, float(kind), raw, role, prose=raw != "null")
