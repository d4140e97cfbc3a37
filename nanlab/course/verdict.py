"""How a check answers: one fixed line when all is well, else an error that says what was tried and what came back."""

from collections.abc import Callable
from dataclasses import dataclass

from nanlab import suspects
from nanlab.course.progress import progress, running_track


class CheckFailed(AssertionError):
    """A learner's answer was turned down. The message says what was tried, what came back and what that points to."""


@dataclass(frozen=True)
class Exercise:
    """The questions of one lesson's exercise, by name, in order."""

    topic: str
    questions: tuple[str, ...]

    def passed(self, question: str) -> None:
        """Print the one line that a right answer to `question` gets, whatever the answer was.

        Side effect: once every question was passed in this process, and in a notebook of a track, the learner's own
        progress notes the exercise. Trouble with that file changes nothing here.
        """
        print(f"{question}: correct")
        right = _RIGHT.setdefault(self.topic, set())
        right.add(question)
        if right.issuperset(self.questions) and (track := running_track()):
            progress().record_exercise(track, self.topic)


_RIGHT: dict[str, set[str]] = {}  # topic -> the questions passed in this process


def fail(tried: str, came_back: str, hint: str, suspect: str | None = None) -> None:
    """Raise CheckFailed from its three parts; `suspect` names a row of the table of usual suspects."""
    lines = [f"tried:     {tried}", f"came back: {came_back}", f"hint:      {hint}"]
    if suspect:
        row = suspects.get(suspect)
        where = f", lesson {row.lesson}" if row.lesson else ""
        lines.append(f"suspect:   {row.title} ({row.name}){where}")
    raise CheckFailed("\n".join(["not yet", *lines]))


def call(function: Callable, *arguments, tried: str):
    """What the learner's `function` returns; CheckFailed when it is no function, is the stub, or raises."""
    if not callable(function):
        fail(tried, f"{function!r}, which is no function", "Write a function with `def`; the stub shows its name.")
    try:
        return function(*arguments)
    except NotImplementedError:
        fail(tried, "the stub", "Nothing is written yet: replace the line that raises NotImplementedError.")
    except Exception as error:
        fail(tried, f"{type(error).__name__}: {error}", "Your code stopped with this error before it gave an answer.")
