"""The map of the course: tracks, topics, minutes, where each notebook lies and what comes before and after it.

A topic is on it by being there: the folder ``nanlab/lessons/<topic>/`` with a ``lesson.toml``, which says the topic's
number and title and holds its questions.
"""

import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

TRACKS = ("beginner", "developer", "researcher")
MINUTES = {"beginner": "10–15", "developer": "20–30", "researcher": "30–45"}


@dataclass(frozen=True)
class Topic:
    """One lesson of the course, taught at three depths under the same file name.

    `about` says in a few plain words what fails in it; `questions` are the entries of its file, by name.
    """

    number: str
    folder: str
    title: str
    about: str
    questions: dict[str, dict] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The notebooks' file name without its ending, such as "05_softmax"."""
        return f"{self.number}_{self.folder}"

    @property
    def prefix(self) -> str:
        """What the ids of its questions begin with: "06", and "checkpoint_06" for the checkpoint after that lesson."""
        return f"checkpoint_{self.number}" if self.folder.endswith("_checkpoint") else self.number


def _topic(folder: Traversable) -> Topic:
    entries = tomllib.loads((folder / "lesson.toml").read_text(encoding="utf-8"))
    said = {key: entries.pop(key) for key in ("number", "title", "about")}
    return Topic(folder=folder.name, questions=entries, **said)


_FOLDERS = [folder for folder in (files("nanlab") / "lessons").iterdir() if (folder / "lesson.toml").is_file()]
START, *TOPICS = sorted(map(_topic, _FOLDERS), key=lambda topic: topic.name)  # the start page has the number 00


def topic(name: str) -> Topic:
    """The topic called `name`; KeyError when the course has none."""
    for found in TOPICS:
        if found.name == name:
            return found
    raise KeyError(f"no topic is called {name!r}; there are: {', '.join(t.name for t in TOPICS)}")


def lesson_path(track: str, name: str) -> Path:
    """Where a lesson's notebook lies, relative to the repository's root."""
    return Path("notebooks") / track / f"{name}.ipynb"


def exercise_path(track: str, name: str) -> Path:
    """Where a lesson's exercise lies, relative to the repository's root."""
    return Path("exercises") / track / f"{name}.ipynb"


def lessons(root: Path, track: str) -> list[Topic]:
    """The topics of `track` whose notebook exists under the repository's `root`, in order."""
    return [t for t in TOPICS if (root / lesson_path(track, t.name)).is_file()]


def neighbours(root: Path, track: str, name: str) -> tuple[Topic | None, Topic | None]:
    """The lessons of `track` just before and just after `name` that exist under `root`."""
    there = lessons(root, track)
    before = [t for t in there if t.name < name]
    after = [t for t in there if t.name > name]
    return (before[-1] if before else None, after[0] if after else None)
