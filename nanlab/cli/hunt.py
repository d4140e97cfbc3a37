"""``nanlab hunt SCRIPT``: runs an unchanged script and finds its first non-finite value."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nanlab.detect.scripts.scripthunt import Outcome

FINITE, FOUND, FAILED, INTERRUPTED = 0, 1, 3, 130  # usage errors are click's 2
OURS = {
    "--json": True,
    "--from-step": True,
    "--scene": True,
    "--every-step": False,
    "--stop-at-skips": False,
    "-m": True,
}  # option -> whether it takes a value


class _AnyPlace(click.Command):
    """Lets our options stand before or after SCRIPT; everything else after it belongs to the script, and so does all
    that follows ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = _script_position(args)
        module = "-m" in args[:at]
        ours, rest = args[:at], args[at + (not module) :]
        theirs: list[str] = []
        while rest:
            word = rest.pop(0)
            name = word.partition("=")[0]
            if word == "--":
                theirs += rest
                break
            if name not in OURS or name == "-m":
                theirs.append(word)
            else:
                ours += [word, rest.pop(0)] if OURS[name] and "=" not in word and rest else [word]
        return super().parse_args(ctx, [*ours, "--", *([] if module else args[at : at + 1]), *theirs])


def _script_position(args: list[str]) -> int:
    at = 0
    while at < len(args) and args[at].startswith("-"):
        module = args[at] == "-m"
        at += 2 if OURS.get(args[at]) else 1
        if module:
            break
    return at


@click.command(cls=_AnyPlace)
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), metavar="OUT",
              help="Also write the report to OUT as one JSON object.")  # fmt: skip
@click.option("--every-step", is_flag=True, help="Hunt every step, however slow.")
@click.option("--from-step", type=click.IntRange(0), default=0, metavar="N",
              help="Leave the script alone until it has made N optimizer steps, then hunt every step.")  # fmt: skip
@click.option("--scene", type=click.Path(path_type=Path), metavar="FILE",
              help="Begin with a saved scene: its weights, random state and batch, not the script's.")  # fmt: skip
@click.option("--stop-at-skips", is_flag=True,
              help="Hunt the first step that the script drops by itself because it is not finite.")  # fmt: skip
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does, instead of SCRIPT.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def command(out: Path | None, every_step: bool, from_step: int, scene: Path | None, stop_at_skips: bool,
            module: str | None, words: tuple[str, ...]) -> int:  # fmt: skip
    """Run SCRIPT (or -m MODULE) with its ARGS, like python -m pdb, and stop at the first non-finite value that reaches
    the loss, a gradient, the weights or the optimizer state.

    The options may also stand after SCRIPT; whatever else stands there goes to the script. Exit status: 0 finite, 1
    non-finite, 2 usage, 3 the script failed for another reason, 130 interrupted.
    """
    script, args = _target(module, words)
    from nanlab.detect.replay.scene import Scene, SceneError
    from nanlab.detect.scripts.ranks import write
    from nanlab.detect.scripts.scripthunt import hunt_script

    if out is not None and not out.absolute().parent.is_dir():
        raise click.BadParameter(f"the folder of {out} does not exist", param_hint="--json")
    try:
        staged = Scene.load(scene) if scene is not None else None
    except SceneError as error:
        raise click.BadParameter(str(error), param_hint="--scene") from error
    target = out.absolute() if out is not None else None  # the script may change folders
    outcome = hunt_script(script, args, every_step=every_step, from_step=from_step, stop_at_skips=stop_at_skips,
                          scene=staged)  # fmt: skip
    status = _say(outcome)
    if target is not None:
        try:
            write(target, outcome)
        except OSError as error:
            wrong = f"{target} could not be written ({error.strerror}); the report is above"
            raise click.BadParameter(wrong, param_hint="--json") from None
    return status


def _target(module: str | None, words: tuple[str, ...]) -> tuple[Path | str, tuple[str, ...]]:
    """What to run, a path or the name of a module, and the words for it."""
    if module is not None:
        from importlib.util import find_spec

        sys.path.insert(0, "")  # as python -m looks for it
        try:
            known = find_spec(module) is not None
        except (ImportError, ValueError):
            known = False
        finally:
            sys.path.remove("")
        if not known:
            raise click.BadParameter(f"there is no module {module} to be seen from this folder", param_hint="-m")
        return module, words
    if not words:
        raise click.UsageError("Missing argument 'SCRIPT'.")
    if not Path(words[0]).is_file():
        raise click.BadParameter(f"there is no file {words[0]}", param_hint="SCRIPT")
    return Path(words[0]), words[1:]


def _say(outcome: Outcome) -> int:
    """Prints to the error stream, which the script's own output does not go to, and returns the exit status."""
    if outcome.traceback is not None:
        click.echo(outcome.traceback, err=True, nl=False)
    if outcome.found:
        click.echo(str(outcome.report), err=True)
    for note in outcome.notes:
        click.echo(note, err=True)
    for what in outcome.not_watched:
        click.echo(f"Not watched: {what}.", err=True)
    failed = outcome.traceback is not None or outcome.status != 0
    click.echo(f"nanlab: {_verdict(outcome, failed)}; {outcome.mode}", err=True)
    return FOUND if outcome.found else INTERRUPTED if outcome.interrupted else FAILED if failed else FINITE


def _verdict(outcome: Outcome, failed: bool) -> str:
    if failed and not outcome.found:
        status = f" with exit status {outcome.status}" if outcome.status else ""
        return f"the script failed by itself{status}"
    said = "finite so far" if not outcome.found and outcome.not_watched else outcome.report.verdict
    steps = f"{said}, {outcome.steps} optimizer steps"
    return f"Interrupted; {steps}" if outcome.interrupted else steps
