"""The way from a log to an answer."""

from collections.abc import Mapping

from nanlab.doctor.answer import Answer
from nanlab.doctor.ask import answered, ask_for
from nanlab.doctor.facts import facts
from nanlab.doctor.fix import advice
from nanlab.doctor.mask import shown
from nanlab.doctor.onset import Onset, first_token, validation_onset
from nanlab.doctor.own import Own, own_report
from nanlab.doctor.readers import Reader
from nanlab.doctor.report import as_html, as_rich, as_text
from nanlab.doctor.run import Run
from nanlab.doctor.sieve import close_lines
from nanlab.doctor.signatures import Evidence, Findings, collect
from nanlab.doctor.source import chunks
from nanlab.doctor.weigh import Ranked, families, ranked, scores, verdict

CERTAIN = 12.0  # the weight of what nanlab itself has found in the run


class Diagnosis(Answer):
    """The answer, which shows itself as text, in a terminal and in a notebook."""

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def __rich__(self):
        return as_rich(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def diagnose(log: object, **answers: str) -> Diagnosis:
    """Reads a training log and says when it went bad, what fits, on which lines' evidence, and what to run next.

    `log` is the text itself, a path, bytes, or an open file; gzip is unpacked. `answers` are answers to questions that
    an earlier diagnosis asked, such as ``precision="fp16"``. Nothing leaves the machine. Memory does not grow with the
    log: of a long one the start, the end and the surroundings of telling lines are read closely. Raises
    FileNotFoundError, IsADirectoryError, PermissionError, `NotALog` for binary content, and ValueError for an answer to
    no question. It cannot see what the log does not print: two causes that leave the same lines get similar scores.
    """
    return judge(read(log), answers)


def read(log: object) -> Run:
    """The events of a log, what `judge` answers from; takes and raises what `diagnose` does."""
    run, reader = Run(), Reader()
    for number, text in close_lines(chunks(log)):
        run.add(reader.read(number, text))
    return run


def judge(run: Run, answers: Mapping[str, str] | None = None) -> Diagnosis:
    """The answer for events already read."""
    told = [answered(key, answer) for key, answer in (answers or {}).items()]
    own = own_report(run)
    found = Findings.of(run, own.onset if own else None) if own else Findings.of(run)
    evidence = [piece for piece in [*collect(found), *told, *_certain(own)] if piece.weights]
    chance = scores(evidence)
    answer = verdict(chance) if run.events else "unknown"
    suspects = ranked(evidence, chance, answer) if run.events else ()
    first = _first(run, found, answer)
    sayings = facts(found, own) if run.events else ()
    likely = bool(suspects) and suspects[0].band != "open" and answer == "fault"
    crash = next(iter(run.signals("crash")), None)
    return Diagnosis(
        verdict=answer,
        suspects=suspects,
        families=families(chance) if answer == "fault" else {},
        first_bad_step=first.step if first else None,
        first_bad_kind=first.kind if first else None,
        first_bad_line=first.line if first else None,
        step_is=None if first is None or first.step is None else "inferred" if first.inferred else "read",
        facts=sayings,
        crash=(crash.phrase.says, crash.line) if crash else None,
        fix=advice(run, suspects[0]) if likely else {},
        ask_for=ask_for(answer, suspects, chance, found, tuple(answers or ())),
        lesson=_lesson(answer, suspects),
        ranks=found.ranks,
        evidence=tuple(evidence),
        quotes=_quotes(run, suspects, sayings, first, crash.line if crash else 0),
        lines=run.lines,
    )


def _certain(own: Own | None) -> list[Evidence]:
    """What a report of nanlab in the log settles."""
    if own is None:
        return []
    if own.verdict == "finite":
        return [Evidence("nanlab's own report: nothing non-finite", (own.line,), {"not_nan": CERTAIN})]
    weights = {own.suspect: CERTAIN} if own.suspect else {"unknown": 1.0}
    return [Evidence("nanlab's own report says so", (own.line,), weights)]


def _first(run: Run, found: Findings, answer: str) -> Onset | None:
    """The first bad record of a fault; of a harmless log the first that shows inf or NaN at all."""
    if answer == "fault":
        return found.onset or validation_onset(run) or first_token(run)
    return first_token(run) if answer == "harmless" else None


def _lesson(answer: str, suspects: tuple[Ranked, ...]) -> str | None:
    from nanlab.suspects import get

    if answer == "no-nan":
        return None
    if answer == "unknown" or not suspects or (answer == "fault" and suspects[0].band == "open"):
        return "11_read_the_log"
    return get(suspects[0].name).lesson


def _quotes(run: Run, suspects, sayings, first: Onset | None, crash: int) -> dict[int, str]:
    wanted = {line for suspect in suspects for line in suspect.lines} | {n for _, lines in sayings for n in lines}
    wanted |= {first.line if first else 0, crash}
    quotes: dict[int, str] = {}
    for event in run.events:
        if event.line in wanted and event.line not in quotes:
            quotes[event.line] = shown(event.text)
    return quotes
