"""``nanlab diagnose``: reads the log of a run that died and ranks the suspects, with the lines that speak for each."""

import sys
from pathlib import Path

import click


class Unreadable(click.ClickException):
    """The log cannot be read: exit status 2, as for a usage error."""

    exit_code = 2


@click.command("diagnose")
@click.argument("log", default="-", metavar="[FILE]")
@click.option(
    "--json",
    "json_path",
    metavar="OUT",
    help="Also write the answer as JSON to OUT; - writes it to standard output instead of the report.",
)
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="KEY=VALUE",
    help="Answer a question that an earlier report asked, such as precision=fp16; may be given several times.",
)
@click.option("--plain", is_flag=True, help="No colour and no table: the same text on every terminal.")
def command(log: str, json_path: str | None, answers: tuple[str, ...], plain: bool) -> int:
    """Read a training log (FILE, or - for standard input; gzip is unpacked) on this machine and rank the suspects.

    Exit status: 0 if nothing is wrong (no inf or NaN, or a harmless one), 1 if the run has a fault or died of another
    error (or the log is empty), 2 if the log cannot be read.
    """
    from nanlab.doctor import NotALog, diagnose

    told = _told(answers)
    try:
        answer = diagnose(sys.stdin.buffer if log == "-" else Path(log), **told)
    except (OSError, NotALog) as error:
        raise Unreadable(_reason(log, error)) from None
    except ValueError as error:  # an answer to no question
        raise click.UsageError(str(error)) from None
    _show(answer, json_path, plain)
    return 0 if answer.fine else 1


def _told(answers: tuple[str, ...]) -> dict[str, str]:
    pairs = [answer.partition("=") for answer in answers]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise click.UsageError(f"--answer takes KEY=VALUE, such as precision=fp16, not {key + equals + value!r}")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _reason(log: str, error: Exception) -> str:
    name = Path(log).name or log
    if isinstance(error, FileNotFoundError):
        return f"{name}: there is no such file"
    if isinstance(error, PermissionError):
        return f"{name}: no permission to read it"
    return f"{name}: {getattr(error, 'strerror', None) or error}"


def _show(answer, json_path: str | None, plain: bool) -> None:
    if json_path == "-":
        click.echo(answer.to_json(), nl=False)
        return
    if json_path is not None:
        try:
            answer.to_json(json_path)
        except OSError as error:
            raise Unreadable(f"{json_path}: {error.strerror}") from None
    if plain or not sys.stdout.isatty():
        click.echo(str(answer))
        return
    from rich.console import Console

    Console().print(answer)
