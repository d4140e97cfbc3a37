"""Generate the cells of a lesson that link to other notebooks, from the map of the course and the files that are there.

Two cells in each lesson: ``links``, just after the title, and ``links-end``, after the cell ``next`` that tells what
comes next (without one, at the end).
"""

import os
from pathlib import Path

from nbformat import NotebookNode, v4

from nanlab import course
from nanlab.authoring import files


def generate(root: Path, *, check: bool = False) -> list[Path]:
    """Bring both cells of each lesson under `root` up to date and return the notebooks where they were not.

    With `check`, nothing is written.
    """
    stale = []
    for track in course.TRACKS:
        for topic in course.lessons(root, track):
            path = root / course.lesson_path(track, topic.name)
            notebook = files.read(path)
            before = [dict(cell) for cell in notebook.cells]
            place(notebook, root, track, topic.name)
            if [dict(cell) for cell in notebook.cells] != before:
                stale.append(path)
                if not check:
                    files.write(notebook, path)
    return stale


def place(notebook: NotebookNode, root: Path, track: str, name: str) -> None:
    """Put both cells where they belong in `notebook`, in place, in the stead of older ones."""
    rest = [cell for cell in notebook.cells if cell.id not in ("links", "links-end")]
    start = _cell("links", opening(root, track, name))
    end = _cell("links-end", closing(root, track, name))
    ids = [cell.id for cell in rest]
    after = ids.index("next") + 1 if "next" in ids else len(rest)
    notebook.cells = [*rest[:1], start, *rest[1:after], end, *rest[after:]]


def opening(root: Path, track: str, name: str) -> str:
    """Track, minutes, the same lesson at the other depths, the lessons before and after, as Markdown."""
    here = (root / course.lesson_path(track, name)).parent
    parts = [f"**{track.capitalize()}** · {course.MINUTES[track]} minutes"]
    depths = [_link(here, root, course.lesson_path(other, name), other) for other in course.TRACKS if other != track]
    if any(depths):
        parts.append("At another depth: " + ", ".join(filter(None, depths)))
    before, after = course.neighbours(root, track, name)
    if before:
        parts.append("Before: " + _lesson(here, root, track, before))
    if after:
        parts.append("Next: " + _lesson(here, root, track, after))
    return " · ".join(filter(None, [*parts, _map(here, root)]))


def closing(root: Path, track: str, name: str) -> str:
    """The next lesson, and the exercise where one exists, as Markdown."""
    here = (root / course.lesson_path(track, name)).parent
    lines = []
    _, after = course.neighbours(root, track, name)
    if after:
        lines.append(f"- Next lesson: {_lesson(here, root, track, after)}, {after.about}")
    exercise = _link(here, root, course.exercise_path(track, name), course.topic(name).title)
    if exercise:
        lines.append(f"- Exercise for this lesson: {exercise}")
    if map_ := _map(here, root):
        lines.append(f"- {map_}")
    return "\n".join(lines)


def _lesson(here: Path, root: Path, track: str, topic: course.Topic) -> str:
    return _link(here, root, course.lesson_path(track, topic.name), topic.title)


def _map(here: Path, root: Path) -> str:
    return _link(here, root, Path("notebooks") / f"{course.START.name}.ipynb", "The map of the course")


def _link(here: Path, root: Path, target: Path, text: str) -> str:
    """A relative Markdown link from the folder `here` to `target`, or nothing when there is no such file."""
    if not (root / target).is_file():
        return ""
    return f"[{text}]({Path(os.path.relpath(root / target, here)).as_posix()})"


def _cell(id_: str, source: str) -> NotebookNode:
    return v4.new_markdown_cell(source, id=id_, metadata={"editable": False})
