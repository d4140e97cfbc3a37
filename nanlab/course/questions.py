"""The questions of the course, kept out of the notebooks so that the answer is not on the page.

Each stands in its lesson's ``lesson.toml`` and is called by the lesson's number and its own name: "02.third_loss". What
an entry must hold: see `Question`.
"""

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nanlab.course import START, TOPICS, Topic

_ASKED = re.compile(r"""predict\(\\?["']([\w.]+)\\?["']\)""")


@dataclass(frozen=True)
class Option:
    """One answer to choose from; `reason` says why it is right, or what makes it tempting and wrong."""

    text: str
    reason: str
    right: bool = False


@dataclass(frozen=True)
class Question:
    """One question. `kind` is "choice" (of `options`) or "number" (`answer` within `tolerance` orders of magnitude).

    `shows` is a block of text to look at, such as the lines of a log. A number's reasons: `reason` for the right one,
    `below` and `above` for a guess that is too small or too large.
    """

    id: str
    text: str
    kind: str
    options: tuple[Option, ...] = ()
    answer: float = math.nan
    tolerance: float = 0.0
    unit: str = ""
    shows: str = ""
    reason: str = ""
    below: str = ""
    above: str = ""

    @property
    def right(self) -> Option:
        return next(option for option in self.options if option.right)

    def judge(self, committed: float | int) -> tuple[bool, str]:
        """Whether `committed` (an option's index, or a number) is right, and the reason that belongs to it."""
        if self.kind == "choice":
            option = self.options[int(committed)]
            return option.right, option.reason
        distance = _orders(committed, self.answer)
        if abs(distance) <= self.tolerance:
            return True, self.reason
        return False, self.below if distance < 0 else self.above


def load(id: str) -> Question:
    """The question called `id`, such as "02.third_loss"; KeyError, naming those there are, for any other."""
    prefix = id.partition(".")[0]
    found = {question.id: question for topic in (START, *TOPICS) if topic.prefix == prefix for question in of(topic)}
    if id not in found:
        raise KeyError(f"no question is called {id!r}; {prefix!r} has: {', '.join(found) or 'none'}")
    return found[id]


@cache
def of(topic: Topic) -> tuple[Question, ...]:
    """The questions of `topic`, checked: ValueError where its file breaks a rule."""
    return tuple(_question(topic.prefix, name, entry) for name, entry in topic.questions.items())


def asked_in(notebook: Path) -> list[str]:
    """The ids of the predictions that `notebook` asks for, in order, each once."""
    return list(dict.fromkeys(_ASKED.findall(notebook.read_text(encoding="utf-8"))))


def _question(prefix: str, name: str, entry: dict) -> Question:
    id = f"{prefix}.{name}"
    options = tuple(Option(**option) for option in entry.get("options", ()))
    try:
        question = Question(**{**entry, "id": id, "options": options})
    except TypeError as wrong:
        raise ValueError(f"question {id}: {wrong}") from None
    for broken, rule in _RULES:
        if broken(question):
            raise ValueError(f"question {id}: {rule}")
    return question


_RULES = (
    (lambda q: q.kind not in ("choice", "number"), 'kind is "choice" or "number"'),
    (lambda q: not q.text.strip(), "it needs a text"),
    (lambda q: q.kind == "choice" and len(q.options) < 2, "a choice needs at least two options"),
    (lambda q: q.kind == "choice" and sum(o.right for o in q.options) != 1, "exactly one option is right"),
    (lambda q: not all(o.reason.strip() and o.text.strip() for o in q.options), "every option needs text and reason"),
    (lambda q: len({o.text for o in q.options}) < len(q.options), "two options read the same"),
    (lambda q: q.kind == "number" and bool(q.options), "a number has no options"),
    (lambda q: q.kind == "number" and not all((q.reason, q.below, q.above)), "it needs reason, below and above"),
    (lambda q: q.kind == "number" and math.isfinite(q.answer) and q.tolerance <= 0, "it needs a tolerance above 0"),
)


def _orders(guess: float, answer: float) -> float:
    """How many orders of magnitude `guess` lies above `answer`; ±inf where that can't be said."""
    if guess == answer or (math.isnan(guess) and math.isnan(answer)):
        return 0.0
    if not math.isfinite(answer) or not math.isfinite(guess) or guess <= 0 or answer <= 0:
        return math.inf if guess > answer else -math.inf
    return math.log10(guess) - math.log10(answer)
