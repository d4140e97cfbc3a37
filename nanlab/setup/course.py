"""Where everything of a set-up lies, and what it says to the user."""

import errno
import hashlib
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

FIRST_PAGE = "notebooks/00_start_here.ipynb"
say = partial(print, flush=True)


class Stop(Exception):
    """Something that the user can put right; the message says what and how."""


@dataclass(frozen=True)
class Course:
    """The folder of the course at `root`, and what set-up keeps there."""

    root: Path

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    @property
    def stamp(self) -> Path:
        """What was installed, written last."""
        return self.venv / "nanlab-installed.json"

    @property
    def building(self) -> Path:
        """There while an installation has not come to its end."""
        return self.venv / "nanlab-building"

    @property
    def log(self) -> Path:
        return self.venv / "nanlab-install.log"

    @property
    def lock(self) -> Path:
        """Held by whoever installs; beside .venv, which may be made anew meanwhile."""
        return self.root / ".venv-lock"

    def fingerprint(self) -> str:
        """Changes when what must be installed changes, and when the folder has moved, which breaks a .venv."""
        parts = [(self.root / name).read_text(encoding="utf-8") for name in ("constraints.txt", "pyproject.toml")]
        return hashlib.sha256("\0".join([*parts, str(self.venv), str(sys.version_info[:2])]).encode()).hexdigest()

    def torch_version(self) -> str:
        lines = (self.root / "constraints.txt").read_text(encoding="utf-8").splitlines()
        return next(line.split("==")[1].split()[0] for line in lines if line.startswith("torch=="))


def in_words(error: OSError) -> str:
    """What the system refused, and what to do about it."""
    remedies = {
        errno.ENOSPC: "The disk is full. Free some space and run the same command again.",
        errno.EDQUOT: "Your share of the disk is used up. Free some space and run the same command again.",
        errno.EACCES: "This folder can't be written to. Put the course where you may write.",
        errno.EROFS: "This folder can't be written to. Put the course where you may write.",
        errno.EPERM: "This folder can't be written to. Put the course where you may write.",
    }
    what = f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
    return f"{what}\n\n{remedies.get(error.errno or 0, 'Set-up could not go on. Run the same command again.')}"
