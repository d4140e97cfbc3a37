"""The .venv: whether it can be used, made anew where it can't, and held by one set-up at a time."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator

from nanlab.setup.course import Course, Stop, say


def installed(course: Course, extra: str) -> bool:
    """True when .venv holds everything for `extra` (tests need all that the course needs)."""
    try:
        stamp = json.loads(course.stamp.read_text(encoding="utf-8"))
        current = stamp["fingerprint"] == course.fingerprint() and extra in stamp["extras"]
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return current and usable(course)


def usable(course: Course) -> bool:
    """True when there is a .venv of this Python and this place that runs, and in which no installation was cut off."""
    if course.building.exists() or not (course.venv / "pyvenv.cfg").exists():
        return False
    ask = "import sys, pip; print(sys.version_info[:2], sys.prefix)"
    try:
        answer = subprocess.run([str(course.python), "-c", ask], capture_output=True, text=True)
    except OSError:  # missing, not executable, built for another processor
        return False
    return answer.stdout.strip() == f"{sys.version_info[:2]} {course.venv}"


def make(course: Course) -> None:
    """Make .venv anew. A file or a dangling link of that name is set aside, not lost."""
    if course.venv.is_symlink() or course.venv.is_file():
        aside = course.venv.with_name(".venv-set-aside")
        course.venv.replace(aside)
        say(f"{course.venv.name} was no folder; it is called {aside.name} now")
    command = [sys.executable, "-m", "venv", "--clear", str(course.venv)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        said = (made.stdout + made.stderr).strip()
        if "ensurepip" in said:
            said = "This Python can't make virtual environments. On Debian or Ubuntu: sudo apt install python3-venv"
        elif "No space left" in said:
            said = "The disk is full. Free some space and run the same command again."
        elif "Permission denied" in said:
            said = "This folder can't be written to. Put the course where you may write."
        raise Stop(said)


@contextlib.contextmanager
def held(course: Course) -> Iterator[None]:
    """Holds the set-up for this process; waits, and says so, while another one installs. The system lets go of the lock
    when its holder ends, however it ends."""
    with course.lock.open("w") as lock:
        if not _take(lock, wait=False):
            say("Another start.py is installing here; waiting for it to finish")
            _take(lock, wait=True)
        yield


def _take(lock, *, wait: bool) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
