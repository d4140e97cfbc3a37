"""The start page's two helpers: four questions that suggest a track, and the map of the course with own progress.

Progress and links stand in the live view alone; what is stored is the plain map, the same for everybody.
"""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment

from nanlab.course import MINUTES, START, TOPICS, TRACKS, Topic, lesson_path
from nanlab.course.front import form, front
from nanlab.course.live import with_view
from nanlab.course.progress import Progress, progress
from nanlab.course.questions import asked_in

QUESTIONS = (  # each answer counts 0, 1 or 2 towards depth
    ("A training loop is something I", ("have never seen", "have run or changed", "write myself")),
    ("I learn best from", ("pictures and plain words", "code that I can run and change", "a derivation, then a check")),
    ("A formula with derivatives is something I", ("skip", "follow when it is explained", "would rather derive")),
    ("I am here to", ("know what NaN means", "get a run of mine working", "predict when a run will fail")),
)
ABOUT = {
    "beginner": "no mathematics and no code to write; pictures, predictions, plain words",
    "developer": "make each failure, find it, fix it, prove the fix, keep a guard; needs Python",
    "researcher": "derive the threshold, predict the number, measure it; needs calculus and linear algebra",
}


def suggest(answers: Sequence[int]) -> str:
    """The track for four answers of 0, 1 or 2.

    Who has never seen a training loop begins at the beginner's; who skips formulas is not sent to the researcher's.
    """
    total = sum(answers)
    if answers[0] == 0 or total <= 2:
        return "beginner"
    return "researcher" if total >= 6 and answers[2] > 0 else "developer"


class TrackChooser:
    """Four lists and a suggestion that follows them."""

    def __init__(self):
        self._texts = {str(n): "" for n in range(len(QUESTIONS))}
        self._widget: Any = None

    @property
    def widget(self):
        """The live view, made when first asked for. ImportError without widgets."""
        if self._widget is None:
            lists = [
                form.control("select", str(n), text, options=["choose …", *choices])
                for n, (text, choices) in enumerate(QUESTIONS)
            ]
            self._widget = front(form.form("page", lists), self.asked)
            self._texts = dict.fromkeys(self._texts, "0")
            self._show()
        return self._widget

    def asked(self, event: dict) -> None:
        """One list was changed."""
        self._texts[event["name"]] = event["text"]
        self._show()

    def _show(self) -> None:
        answers = [int(text) - 1 for text in self._texts.values()]
        left = answers.count(-1)
        track = None if left else suggest(answers)
        waiting = f"{left} to go." if left < len(answers) else "Answer all four for a suggestion."
        self._widget.show(
            controls={name: form.state(text) for name, text in self._texts.items()},
            sentence=f"Suggested: {track} ({ABOUT[track]})." if track else waiting,
            more=_first(track) if track else "",
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        lines = [f"{text}: {' / '.join(choices)}" for text, choices in QUESTIONS]
        rule = "Mostly the first answers: beginner. Mostly the second: developer. Mostly the third: researcher."
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        data = {"text/plain": "\n".join([*lines, rule]), "text/html": f"<ol>{items}</ol><p>{rule}</p>"}
        return with_view(data, lambda: self.widget, "The live view")


class CourseMap:
    """All lessons at three depths. Live: links to the notebooks that are there, and the learner's own progress."""

    def __init__(self):
        self._widget: Any = None
        self._sure = False

    @property
    def widget(self):
        """The live view, drawn from the files and the progress of this moment. ImportError without widgets."""
        if self._widget is None:
            buttons = ["Forget all answers …", "Yes, forget them", "Keep them"]
            self._widget = front(form.form("page", (), buttons, buttons_label=""), self.asked)
        self._show()
        return self._widget

    def asked(self, event: dict) -> None:
        """Forget what was answered, after one more question."""
        if event["press"] == 1 and self._sure:
            kept = progress()
            kept.forget_all()
            self._sure = False
            self._show(kept.note or "All answers and exercises are forgotten.")
            return
        self._sure = event["press"] == 0
        self._show()

    def _show(self, said: str = "") -> None:
        kept, root = progress(), find_root(Path.cwd())
        states = {(track, topic.name): _state(root, kept, track, topic) for track in TRACKS for topic in TOPICS}
        count = len(kept.answered())
        sure = f"Forget {count} answers and the exercises passed? This can't be undone."
        self._widget.show(
            buttons=[form.button(hidden=hidden) for hidden in (self._sure, not self._sure, not self._sure)],
            sentence=said or (sure if self._sure else kept.note),
            more=_map(states),
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        lessons = [f"{topic.name[:2]}  {topic.title}: {topic.about}" for topic in TOPICS]
        depths = [f"{track}: {MINUTES[track]} minutes a lesson; {ABOUT[track]}" for track in TRACKS]
        data = {"text/plain": "\n".join([*lessons, *depths]), "text/html": _map()}
        return with_view(data, lambda: self.widget, "The live view")


def choose_track() -> TrackChooser:
    """Four short questions that suggest a track; the last expression of a cell."""
    return TrackChooser()


def course_map() -> CourseMap:
    """The map of the course; the last expression of a cell."""
    return CourseMap()


def find_root(start: Path) -> Path | None:
    """The folder at or above `start` that holds the course's notebooks, or None."""
    return next((f for f in [start, *start.parents] if (f / "notebooks" / f"{START.name}.ipynb").is_file()), None)


def _state(root: Path | None, kept: Progress, track: str, topic: Topic) -> str | None:
    """How much of a lesson is done; None for one that is not there."""
    if root is None or not (file := root / lesson_path(track, topic.name)).is_file():
        return None
    asked, answered = asked_in(file), kept.answered(track)
    done = sum(id in answered for id in asked)
    state = f"{done} of {len(asked)} answered" if done else "not begun"
    state = "✓ answered" if asked and done == len(asked) else state
    return state + (" · exercise ✓" if kept.passed(track, topic.name) else "")


def _map(states: dict[tuple[str, str], str | None] | None = None) -> str:
    """The map as HTML: plain, or with links and what is done where there are `states` by track and topic."""
    template = files("nanlab.lessons.start_here").joinpath("map.html.jinja").read_text("utf-8")
    page = Environment(autoescape=True, trim_blocks=True).from_string(template)
    return page.render(topics=TOPICS, minutes=MINUTES, states=states)


def _first(track: str) -> str:
    """A link to the first lesson of `track`, where it is there."""
    topic, root = TOPICS[0], find_root(Path.cwd())
    there = root is not None and (root / lesson_path(track, topic.name)).is_file()
    first = f'<a href="{track}/{topic.name}.ipynb">Begin with {topic.title}</a>. ' if there else ""
    return f"<p>{first}Every lesson links to its other depths, so you can change at any time.</p>"
