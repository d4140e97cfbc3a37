"""What messages mean: the rows of ``phrases.toml`` and ``operations.toml``, matched against one line at a time."""

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

REACH = 1500  # characters of a line that are matched: every pattern is bounded, and so is what it sees
_BAD = ("nonfinite", "data", "replaced")
_DENIED = re.compile(  # "no NaN found", "checking for NaN", "stop_on_nan: true": no report of one
    r"\b(?:no|0|zero|without|if|for|any|never|of) (?:more )?(?:nans?|infs?|infinite|non-?finite)\b"
    r"|(?:nans?|infs?)\b.{0,20}\b(?:check|guard|detection|filter)\w{0,3}\b|nan\w{0,10}[ =:]{1,3}(?:false|true|0\b|none)"
    r"|\bfinite 0/0\b"
)
_NODE = re.compile(r"\b([a-z][a-z0-9_]{1,60}?)backward\d{0,2}\b|encountered in (?:jit\()?(?:jit\()?([a-z_0-9]{2,40})")


@dataclass(frozen=True)
class Phrase:
    """One row. `weights` are log likelihood ratios for suspects, estimated by hand; of one `group` the strongest
    counts. `hit` is a line that it fits and `miss` one that looks alike and that it must not fit."""

    says: str
    need: tuple[str, ...] = ()
    pattern: re.Pattern | None = None
    signal: str = ""
    group: str = ""
    weights: dict[str, float] = field(default_factory=dict)
    hit: str = ""
    miss: str = ""

    def fits(self, low: str) -> bool:
        if self.need and not any(word in low for word in self.need):
            return False
        if self.signal in _BAD and _DENIED.search(low):
            return False
        return self.pattern is None or self.pattern.search(low) is not None


@dataclass(frozen=True)
class Hit:
    """A phrase on a line. `step` is that line's."""

    phrase: Phrase
    line: int
    step: int | None = None
    counted: bool = False
    validation: bool = False
    text: str = ""


@cache
def _rows(name: str) -> dict:
    return tomllib.loads(files("nanlab.doctor").joinpath(name).read_text("utf-8"))


@cache
def table(section: str) -> tuple[Phrase, ...]:
    """The rows of ``phrase``, or of ``code`` or ``form`` beside the operations."""
    rows = _rows("phrases.toml")["row"] if section == "phrase" else _rows("operations.toml")[section]
    return tuple(map(_phrase, rows))


def _phrase(row: dict) -> Phrase:
    need = row.get("need", ())
    return Phrase(
        says=row["says"],
        need=(need,) if isinstance(need, str) else tuple(need),
        pattern=re.compile(row["match"]) if "match" in row else None,
        signal=row.get("signal", ""),
        group=row.get("group", row["says"]),
        weights=row.get("for", {}),
        hit=row.get("hit", ""),
        miss=row.get("miss", ""),
    )


@cache
def operations() -> dict[str, dict[str, float]]:
    """Weights by the name of an operation, in lower case and without ``Backward0`` or underscores."""
    return {name: row["for"] for row in _rows("operations.toml")["op"] for name in row["names"]}


def phrases(low: str) -> list[Phrase]:
    """The phrases that a line, in lower case, holds."""
    low = low[:REACH]
    return [phrase for phrase in table("phrase") if phrase.fits(low)]


def operation(low: str) -> str:
    """The operation that a line of anomaly mode or JAX names, or ``""``: ``sqrt`` for ``SqrtBackward0``."""
    match = _NODE.search(low[:REACH])
    return (match[1] or match[2] or "").replace("_", "").strip() if match else ""
