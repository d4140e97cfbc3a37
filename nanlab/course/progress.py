"""What a learner has done, kept in a file of the learner's own: ``$NANLAB_HOME`` or ``~/.nanlab``, ``progress.json``.

Never in the repository and never in a compared output. Trouble with the file is one line of text, not an error.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from nanlab.course import TRACKS

_EMPTY: dict[str, dict] = {"answers": {}, "exercises": {}}


class Progress:
    """Answers committed and exercises passed. `note` is a line about trouble with the file, or empty."""

    def __init__(self, path: Path):
        self.path, self.note = path, ""
        self._data = self._read()

    def answered(self, track: str | None = None) -> dict[str, dict]:
        """Question id -> {"committed", "right"}, of one track or of all."""
        entries = ([*key.split("/", 1), value] for key, value in self._data["answers"].items())
        return {id: value for at, id, value in entries if track in (None, at)}

    def passed(self, track: str, name: str) -> bool:
        """Whether the exercise of lesson `name` in `track` was passed."""
        return f"{track}/{name}" in self._data["exercises"]

    def record_answer(self, id: str, committed: str, right: bool) -> None:
        """Keep an answer under the track of the running notebook. Side effect: writes the file."""
        self._keep("answers", _key(id), {"committed": committed, "right": right})

    def record_exercise(self, track: str, name: str) -> None:
        """Keep that an exercise was passed. Side effect: writes the file."""
        self._keep("exercises", f"{track}/{name}", True)

    def answer(self, id: str) -> dict | None:
        """What was committed to the question called `id` in the running notebook's track, or None."""
        return self._data["answers"].get(_key(id))

    def forget_answer(self, id: str) -> None:
        """Remove the answer to `id` in the running notebook's track. Side effect: writes the file."""
        self._data = self._read()
        if self._data["answers"].pop(_key(id), None) is not None:
            self._save()

    def forget_all(self) -> None:
        """Remove every answer and every exercise. Side effect: writes the file."""
        self._data = {section: {} for section in _EMPTY}
        self._save()

    def _keep(self, section: str, key: str, value: object) -> None:
        self._data = self._read()  # another notebook may have written since
        self._data[section][key] = value
        self._save()

    def _save(self) -> None:
        try:
            _write(self.path, self._data)
        except OSError as wrong:
            self.note = (
                f"Progress could not be saved in {self.path.name} ({wrong.strerror}); all else works without it."
            )

    def _read(self) -> dict:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            return {section: _checked(section, data.get(section, {})) for section in _EMPTY}
        except FileNotFoundError:
            return {section: {} for section in _EMPTY}
        except OSError as wrong:
            self.note = (
                f"Progress could not be read from {self.path.name} ({wrong.strerror}); all else works without it."
            )
        except (ValueError, TypeError, AttributeError):
            self.note = self._set_aside()
        return getattr(self, "_data", None) or {section: {} for section in _EMPTY}

    def _set_aside(self) -> str:
        """Rename a file that is not ours to read, so that nothing in it is lost."""
        aside = next(p for n in range(1, 10_000) if not (p := self.path.with_suffix(f".unreadable-{n}.json")).exists())
        try:
            self.path.rename(aside)
        except OSError:
            return f"{self.path.name} could not be understood; it was left alone."
        return f"{self.path.name} could not be understood; it was kept as {aside.name} and a new one begun."


def _checked(section: str, entries: Any) -> dict:
    """`entries` of the file as they are; TypeError where they are not what this file keeps."""
    whole = isinstance(entries, dict) and all(key.partition("/")[2] for key in entries)
    if not whole or (section == "answers" and not all(isinstance(entry, dict) for entry in entries.values())):
        raise TypeError(f"{section} is not what nanlab keeps there")
    return dict(entries)


def _key(id: str) -> str:
    return f"{running_track() or 'any'}/{id}"


def progress() -> Progress:
    """The learner's progress as the file has it now. Cost: one small file read."""
    return Progress(home() / "progress.json")


def home() -> Path:
    """The learner's own folder: ``$NANLAB_HOME``, or ``.nanlab`` in the home folder. It may not exist yet."""
    chosen = os.environ.get("NANLAB_HOME")
    return Path(chosen).expanduser() if chosen else Path.home() / ".nanlab"


def running_track() -> str | None:
    """The track of the notebook this kernel runs, as JupyterLab tells it; None outside of a track's folder."""
    folder = Path(os.environ.get("JPY_SESSION_NAME", "")).parent.name
    return folder if folder in TRACKS else None


def _write(path: Path, data: dict) -> None:
    """Replace `path` in one step, so that a full disk or a crash leaves the old file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, ensure_ascii=False)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
