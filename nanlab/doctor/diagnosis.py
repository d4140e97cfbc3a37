"""What the doctor answers, and the way from a log to it."""

from nanlab.doctor.answer import Answer
from nanlab.doctor.ask import ask_for
from nanlab.doctor.mask import mask
from nanlab.doctor.onset import validation_onset
from nanlab.doctor.readers import Reader
from nanlab.doctor.report import as_html, as_rich, as_text
from nanlab.doctor.run import Run
from nanlab.doctor.sieve import close_lines
from nanlab.doctor.signatures import Findings, collect
from nanlab.doctor.source import chunks
from nanlab.doctor.weigh import Ranked, ranked, scores, verdict

QUOTE = 160  # characters of a line that are quoted


class Diagnosis(Answer):
    """The answer, which shows itself as text, in a terminal and in a notebook."""

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def __rich__(self):
        return as_rich(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def diagnose(log: object) -> Diagnosis:
    """Reads a training log and says when it went bad, what fits, on which lines' evidence, and what to run next.

    `log` is the text itself, a path, bytes, or an open file; gzip is unpacked. Nothing leaves the machine. Memory does
    not grow with the log: of a long one the start, the end and the surroundings of telling lines are read closely.
    Raises FileNotFoundError, IsADirectoryError, PermissionError, or `NotALog` for binary content. It cannot see what
    the log does not print: two causes that leave the same lines get similar scores.
    """
    return judge(read(log))


def read(log: object) -> Run:
    """The events of a log, what `judge` answers from; takes and raises what `diagnose` does."""
    run, reader = Run(), Reader()
    for number, text in close_lines(chunks(log)):
        run.add(reader.read(number, text))
    return run


def judge(run: Run) -> Diagnosis:
    """The answer for events already read."""
    found = Findings.of(run)
    evidence = [piece for piece in collect(found) if piece.weights]
    chance = scores(evidence)
    answer = verdict(chance) if run.events else "unknown"
    suspects = ranked(evidence, chance, answer) if run.events else ()
    first = found.onset or validation_onset(run)
    bad = first if answer in {"fault", "unknown"} else None
    return Diagnosis(
        verdict=answer,
        suspects=suspects,
        first_bad_step=bad.step if bad else None,
        first_bad_kind=bad.kind if bad else None,
        first_bad_line=bad.line if bad else None,
        ask_for=ask_for(answer, suspects, found),
        lesson=_lesson(answer, suspects),
        ranks=found.ranks,
        evidence=tuple(evidence),
        quotes=_quotes(run, suspects),
        lines=run.lines,
    )


def _lesson(answer: str, suspects: tuple[Ranked, ...]) -> str | None:
    from nanlab.suspects import get

    if answer == "no-nan":
        return None
    if answer == "unknown" or not suspects:
        return "11_read_the_log"
    return get(suspects[0].name).lesson


def _quotes(run: Run, suspects: tuple[Ranked, ...]) -> dict[int, str]:
    wanted = {line for suspect in suspects for line in suspect.lines}
    quotes: dict[int, str] = {}
    for event in run.events:
        if event.line in wanted and event.line not in quotes:
            quotes[event.line] = _shortened(mask(event.text[: 4 * QUOTE].strip()))
    return quotes


def _shortened(text: str) -> str:
    return text if len(text) <= QUOTE else text[: QUOTE - 1] + "…"
