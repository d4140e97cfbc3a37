"""The command itself: what was asked for, in which order it is done, and what is said when it can't be."""

import argparse
import json
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

from nanlab.setup import environment, packages
from nanlab.setup.course import FIRST_PAGE, Course, Stop, in_words, say
from nanlab.setup.serve import free_port, serve

ALL_TESTS = ["-n", "2", "--dist", "loadgroup"]  # tests that share a warm process or a browser stay in one worker


def main(course: Course | None = None) -> int:
    """Run ``start.py`` on the folder that holds this package."""
    course = course or Course(Path(__file__).resolve().parents[2])
    options, rest = arguments()
    try:
        extra = "test" if options.command == "test" else "course"
        if options.check:
            return tell(course, extra, options.port)
        install(course, extra)
        if extra == "test":
            return run_tests(course, rest)
        return serve(course, options.port, browser=not options.no_browser)
    except Stop as stop:
        print(f"\n{stop}", file=sys.stderr)
    except OSError as error:
        print(f"\n{in_words(error)}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to go on.", file=sys.stderr)
        return 130
    return 1


def arguments() -> tuple[argparse.Namespace, list[str]]:
    usage = "%(prog)s [--no-browser] [--port N] [--check] [test [PYTEST ARGUMENTS]]"
    parser = argparse.ArgumentParser(prog="start.py", usage=usage, allow_abbrev=False)
    parser.add_argument("command", nargs="?", choices=["test"], help="run the tests instead of opening the course")
    parser.add_argument("--no-browser", action="store_true", help="open no browser window; print the address")
    parser.add_argument("--port", type=int, help="the port of JupyterLab (default: 8888, or the next free one)")
    parser.add_argument("--check", action="store_true", help="say what would be done, and do nothing")
    options, rest = parser.parse_known_args()
    if rest and options.command != "test":
        parser.error(f"unknown: {' '.join(rest)}")
    return options, rest


def tell(course: Course, extra: str, port: int | None) -> int:
    """Print what a run would do."""
    print(f"Python {platform.python_version()}: new enough")
    print(f"Free on this disk: {shutil.disk_usage(course.root).free / 1e9:.1f} GB")
    if environment.installed(course, extra):
        print(f"{course.venv.name} holds everything: nothing would be installed")
    else:
        print(f"{course.venv.name} would be {'completed' if environment.usable(course) else 'made'}")
        torch = packages.torch_source(sys.executable, course.torch_version())
        print(f"torch {course.torch_version()} would come from {torch.where}")
    print("The tests would run" if extra == "test" else f"JupyterLab would open {FIRST_PAGE} on port {free_port(port)}")
    return 0


def install(course: Course, extra: str) -> None:
    """Make .venv hold everything for `extra`. Does nothing when it does already."""
    if environment.installed(course, extra):
        return
    with environment.held(course):
        if not environment.installed(course, extra):  # another start.py may have done it while this one waited
            _install(course, extra)


def _install(course: Course, extra: str) -> None:
    began = time.monotonic()
    if not environment.usable(course):
        say(f"1/2  Making {course.venv.name} with Python {platform.python_version()}")
        environment.make(course)
    course.building.touch()
    torch = packages.torch_source(str(course.python), course.torch_version())
    say(f"2/2  Installing torch {course.torch_version()} from {torch.where},\n     and JupyterLab; this happens once")
    packages.check_disk(course, torch.build)
    packages.install(course, torch, extra)
    no_news(course)
    stamp = {"fingerprint": course.fingerprint(), "extras": sorted({"course", extra})}
    course.stamp.write_text(json.dumps(stamp) + "\n", encoding="utf-8")
    course.building.unlink()
    say(f"Installed in {time.monotonic() - began:.0f} s.")


def no_news(course: Course) -> None:
    """Keep JupyterLab from asking, on its first page, whether it may fetch news."""
    page = course.venv / "etc/jupyter/labconfig/page_config.json"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(json.dumps({"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}) + "\n")


def run_tests(course: Course, pytest_arguments: list[str]) -> int:
    command = [str(course.python), "-m", "pytest", *(pytest_arguments or ALL_TESTS)]
    return subprocess.run(command, cwd=course.root).returncode
