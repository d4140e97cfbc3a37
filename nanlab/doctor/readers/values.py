"""Finds the numbers of a line with their names, whatever stands between them: ``loss: 1.2``, ``loss=nan``,
``'loss': nan``, ``| loss | 1.#IND``, ``loss 6.59 (nan)``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

NONFINITE = (
    r"[-+]?(?:nan(?:x*|16|32|64|f0?)(?:\.0)?(?:\([a-z0-9]{0,12}\))?|1\.\#(?:ind|inf|qnan|snan|nan|j)\d*"
    r"|inf(?:inity|16|32|64|f0?)?(?:\.0)?)(?![a-z0-9_])"  # Julia writes NaN32 and Inf32
)
_VALUE = re.compile(
    rf"(?<![a-z0-9_.])(?P<bad>\.?{NONFINITE})"
    r"|(?<![a-z0-9_.])(?P<number>[-+]?(?:\d{1,3}(?:,\d{3}){1,5}(?![\d,])|\d{1,40}(?:\.\d{0,40})?"
    r"|\.\d{1,40})(?:e[-+]?\d{1,4})?)"
    r"(?!\w|\.\d)(?P<percent>\s?%)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\d{4}[-/]\d\d?[-/]\d\d?(?:T\d\d)?|\b\d\d[-/]\d\d[-/]\d{2,4}\b"  # dates
    r"|\b\d{1,3}(?::\d\d){1,2}(?:[.,]\d{1,9})?Z?\b|\b\d\d/\d\d(?= \[)"  # times and durations
    r"|(?<=\[)\d\d/\d\d(?=\s)|^\d\d/\d\d(?= \d\d:)|\b\d+ days?,|'?\b[\w/.-]{1,80}\.(?:py|cc|cpp|cu|h|lua"
    r"|java)['\"]?[: ]{1,2}(?:line )?\d+"
    r"|(?<=[(:])[a-z_]{1,30}:\d+(?=[\])])|\(\w{1,30}:\d+\)",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"[,;|\t{}()\[\]<>!]|\s{2,}| - |\u2022|\u2502|\u2503")
_EDGE = " \t=:'\"|>~*#-\u2192\u2022\u2502\u2503`"
_LEVEL = re.compile(r"^(?:info|warn(?:ing)?|error|debug)\b[: ]?(?:[\w.]{1,40}:)?")
_FILLER = {"is", "was", "are", "to", "at", "of", "the", "a", "got", "has", "became", "becomes", "equal", "and", "with",
           "value", "returned", "reached", "now", "equals", "went", "turned", "after", "by", "avg"}  # fmt: skip
_KEY = re.compile(r"\s?[=:]|-?safe\b|_")
_KEY_AFTER = re.compile(
    r"[ -][a-z_]{1,20}(?: [a-z]{1,20})?\s{0,3}[:=]|\s(?:check|grad(?:ient)?s? (?:skip|count))", re.IGNORECASE
)
_DENIED = re.compile(r"\b(?:no|without|any|for|if|zero|never|0) $", re.IGNORECASE)
_BEFORE_KEY = re.compile(
    r"(?:^|[^a-z])(?:num(?:ber)?|of|no|any|has|skip(?:ped)?|found|total|count|check|ignore)[ _]$", re.IGNORECASE
)
_BAR = re.compile("[\u2580-\u259f\u2501\u2578\u257a]")
_QUALIFIER = re.compile(r"(?<=\w) ?\(\w{1,12}\)(?=\s{0,2}[:=]\s{0,3}$)")  # "loss (local): 0.4"
_PREFIX = re.compile(r"([A-Za-z]\w{0,40})\[(?=[A-Za-z])")


@dataclass(slots=True)
class Pair:
    """One number of a line as it stands: `name` in lower case, ``""`` for a bare column; `total` from ``n/total``."""

    name: str
    raw: str
    number: float
    start: int
    end: int
    percent: bool = False
    total: float | None = None
    inside: bool = False  # in parentheses behind another value: its running mean
    prose: bool = False  # part of a sentence, not of a record


def number_of(raw: str) -> float | None:
    """The float that `raw` spells, in any of the spellings that frameworks print; None for anything else."""
    low = raw.strip().strip("'\"").lower().rstrip("%")
    sign = -1.0 if low.startswith("-") else 1.0
    bare = low.lstrip("+-.")
    if bare.startswith("nan") or (bare.startswith("1.#") and "inf" not in bare):
        return float("nan") if re.fullmatch(NONFINITE, low.lstrip("."), re.IGNORECASE) else None
    if bare in {"inf", "infinity", "inf.0"} or bare.startswith("1.#inf"):
        return sign * float("inf")
    try:
        return float(low.replace(",", "")) if (low and low[-1].isdigit()) or low.endswith(".") else None
    except ValueError:
        return None


def without_clock(text: str) -> str:
    """`text` with dates, times, source positions and drawn bars blanked, every other character in its place."""
    return _BAR.sub("|", _CLOCK.sub(lambda m: " " * len(m[0]), text))


def pairs(text: str) -> list[Pair]:
    """Every number of `text` (already `without_clock`) with the name in front of it."""
    found: list[Pair] = []
    end, last_name, prefix = 0, "", ""
    for match in _matches(text):
        gap = text[end : match.start()]
        if gap.strip() == "/" and found and not match["bad"]:
            total = number_of(match[0].rstrip("% "))
            found[-1].total = total if total and abs(total) < 1e12 else None
            end = match.end()
            continue
        prefix = _prefix(gap, prefix)
        pair = _pair(gap, match, last_name, found)
        if prefix and pair.name and not pair.inside:
            pair.name = f"{prefix}/{pair.name}"
        if gap == " " and found and not pair.name and found[-1].raw.isdigit() and "loss" in found[-1].name:
            pair.name, found[-1].name = found[-1].name, "iteration"  # "Train loss 120 0.53": the counter, then the loss
        found.append(pair)
        last_name, end = pair.name or last_name, match.end()
    return found


def _matches(text: str) -> Iterator[re.Match]:
    for match in _VALUE.finditer(text):
        if match["bad"] and _is_key(text, match):
            continue  # "number of nan iterations: 0" and "nan=0.0" name something, they are no value
        yield match


def _is_key(text: str, match: re.Match) -> bool:
    before = text[max(0, match.start() - 12) : match.start()]
    if before.rstrip(" '\"").endswith((":", "=")):
        return False
    return bool(_DENIED.search(before) or _KEY.match(text, match.end())) or bool(
        _KEY_AFTER.match(text, match.end()) and _BEFORE_KEY.search(before)
    )


def _prefix(gap: str, prefix: str) -> str:
    opened = _PREFIX.search(gap)
    return opened[1].lower() if opened else "" if "]" in gap else prefix


def _pair(gap: str, match: re.Match, last_name: str, found: list[Pair]) -> Pair:
    raw = match["bad"] or match["number"].rstrip(".")
    name, prose = name_of(gap)
    closed = match.string[match.end() : match.end() + 4].lstrip().startswith(")")
    inside = bool(found) and gap.strip() == "(" and closed and found[-1].name != ""
    if inside:
        name = found[-1].name
    elif not name and (prose or gap.strip(" '\"") == ","):
        name = last_name  # a sentence goes on, or a list does
    return Pair(
        name, raw, number_of(raw) or 0.0, match.start(), match.end(), bool(match["percent"]), None, inside, prose
    )


def name_of(gap: str) -> tuple[str, bool]:
    """(name, is it prose) from the text between two numbers: the last words before the separator."""
    gap = _QUALIFIER.sub("", gap)
    tail = gap.rstrip()
    explicit = tail.endswith(("=", ":", "|", "│", "┃", "→", "->", "(", "[", ",")) or tail.endswith(("': ", '":'))
    pieces = [p.strip(_EDGE) for p in _SPLIT.split(gap)]
    pieces = [p for p in pieces if p]
    if not pieces or (gap.rstrip().endswith(",") and not explicit):
        return "", False
    if tail.endswith(",") and len(pieces) > 0 and not re.search(r"[=:]", gap):
        return _words(pieces[-1], 2), False
    words = _words(pieces[-1], 5)
    kept = [w for w in words.split() if w not in _FILLER]
    prose = not explicit and (len(kept) < len(words.split()) or len(kept) > 3)
    return " ".join(kept[-4:]), prose


def _words(piece: str, most: int) -> str:
    words = piece.lower().replace("'", "").replace('"', "").split()[-most:]
    return _LEVEL.sub("", " ".join(words)).strip(_EDGE)
