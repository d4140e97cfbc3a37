"""The map of the course: tracks, topics, minutes, where each notebook lies and what comes before and after it."""

from dataclasses import dataclass
from pathlib import Path

TRACKS = ("beginner", "developer", "researcher")
START = "00_start_here"

MINUTES = {"beginner": "10–15", "developer": "20–30", "researcher": "30–45"}


@dataclass(frozen=True)
class Topic:
    """One lesson of the course, taught at three depths under the same file name."""

    name: str  # the notebooks' file name without its ending, such as "05_softmax"
    title: str
    about: str  # what fails in it, in a few plain words


TOPICS = (
    Topic("01_two_markers", "Two markers", "inf and NaN, and how one becomes the other"),
    Topic("02_loss_explosion", "The loss explosion", "a learning rate too high for unscaled inputs"),
    Topic("03_padding_row", "The padding row", "0/0, and what anomaly detection sees"),
    Topic("04_small_boxes", "Small boxes", "fp16 overflow at 65,504"),
    Topic("05_softmax", "Softmax", "exp overflows, and log of what underflowed"),
    Topic("06_recurrent", "Recurrent networks", "gradients that explode through time"),
    Topic("06_recurrent_checkpoint", "Checkpoint: six dead runs", "the failures of lessons 01 to 06, without labels"),
    Topic("07_hidden_gradients", "Hidden gradients", "a finite loss whose gradient is NaN"),
    Topic("08_bad_batch", "The bad batch", "data, and denominators made from data"),
    Topic("09_step_12001", "Step 12,001", "the whole investigation of a rare NaN"),
    Topic("10_standing_guard", "Standing guard", "checks that stay on, and what they cost"),
    Topic("11_read_the_log", "Read the log", "when only the text of a run is left"),
    Topic("12_case_files", "Case files", "fresh cases to solve"),
)


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
