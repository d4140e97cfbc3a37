"""The start page's two helpers: four questions that suggest a track, and the map of the course with own progress.

Progress and links stand in the live view alone; what is stored is the plain map, the same for everybody.
"""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment

from nanlab.course import MINUTES, START, TOPICS, TRACKS, Topic, lesson_path
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

    @property
    def widget(self):
        """The live view. Needs ipywidgets."""
        import ipywidgets as w

        wide, style = w.Layout(width="600px", max_width="100%"), {"description_width": "310px"}
        lists = [
            w.Dropdown(
                options=[("choose …", None), *((text, n) for n, text in enumerate(choices))],
                description=text,
                tooltip="Space opens the list",
                style=style,
                layout=wide,
            )
            for text, choices in QUESTIONS
        ]
        answer = w.HTML(_status("Answer all four for a suggestion."))

        def changed(_) -> None:
            answers = [chosen.value for chosen in lists]
            left = answers.count(None)
            answer.value = _suggestion(suggest(answers)) if not left else _status(f"{left} to go.")

        for chosen in lists:
            chosen.observe(changed, "value")
        box = w.VBox([w.HTML(_STYLE), *lists, answer], layout=w.Layout(overflow="visible"))
        box.add_class("nanlab-start")
        return box

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        lines = [f"{text}: {' / '.join(choices)}" for text, choices in QUESTIONS]
        rule = "Mostly the first answers: beginner. Mostly the second: developer. Mostly the third: researcher."
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        data = {"text/plain": "\n".join([*lines, rule]), "text/html": f"<ol>{items}</ol><p>{rule}</p>"}
        return with_view(data, lambda: self.widget, "The live view")


class CourseMap:
    """All lessons at three depths. Live: links to the notebooks that are there, and the learner's own progress."""

    @property
    def widget(self):
        """The live view, drawn from the files and the progress of this moment. Needs ipywidgets."""
        import ipywidgets as w

        kept = progress()
        note = f"<p>{escape(kept.note)}</p>" if kept.note else ""
        root = find_root(Path.cwd())
        states = {(track, topic.name): _state(root, kept, track, topic) for track in TRACKS for topic in TOPICS}
        box = w.VBox([w.HTML(_STYLE + _map(states) + note)])
        box.add_class("nanlab-start")
        return box

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


def _suggestion(track: str) -> str:
    topic, root = TOPICS[0], find_root(Path.cwd())
    there = root is not None and (root / lesson_path(track, topic.name)).is_file()
    first = f'<a href="{track}/{topic.name}.ipynb">Begin with {topic.title}</a>.' if there else ""
    return (
        f'<div role="status" aria-live="polite">Suggested: <strong>{track}</strong> ({ABOUT[track]}). '
        f"{first} Every lesson links to its other depths, so you can change at any time.</div>"
    )


def _status(text: str) -> str:
    return f'<div role="status" aria-live="polite">{escape(text)}</div>'


_STYLE = """<style>
.nanlab-start { max-width: 760px; }
.nanlab-start .widget-html-content { line-height: 1.45; font-size: 14px; color: var(--jp-content-font-color1, #222); }
.nanlab-start .widget-label { font-size: 14px; text-align: left; color: var(--jp-content-font-color1, #222); }
.nanlab-start select:focus-visible, .nanlab-start a:focus-visible { outline: 2px solid #0072b2; outline-offset: 1px; }
.nanlab-start table { border-collapse: collapse; font-size: 13px; }
.nanlab-start th, .nanlab-start td { text-align: left; vertical-align: top; padding: 5px 18px 5px 0; line-height: 1.4;
  border-bottom: 1px solid var(--jp-border-color2, #ddd); color: var(--jp-content-font-color1, #222); }
.nanlab-start td { white-space: nowrap; }
.nanlab-start th small { font-weight: normal; font-size: 12px; }
.nanlab-start a { color: var(--jp-content-link-color, #0b57d0); text-decoration: underline; }
.nanlab-start .nanlab-state { font-size: 12px; }
</style>"""
