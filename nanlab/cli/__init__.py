"""The ``nanlab`` command. Each subcommand lives in its own file and loads only when it is called."""

import sys
from importlib import import_module

import click

_COMMANDS = {  # name -> module that holds a click command called `command`
    "hunt": "nanlab.cli.hunt",
    "diagnose": "nanlab.cli.diagnose",
    "suspects": "nanlab.cli.suspects",
    "author": "nanlab.cli.author",
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx):
        return list(_COMMANDS)

    def get_command(self, ctx, name):
        return import_module(_COMMANDS[name]).command if name in _COMMANDS else None


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="nanlab")
def cli() -> None:
    """Find the first NaN of a training run."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line on ``argv`` (default: ``sys.argv[1:]``) and return its exit status.

    A subcommand returns its own status; a usage error is 2, an interrupted command 130.
    """
    try:
        status = cli.main(args=argv, prog_name="nanlab", standalone_mode=False)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return 130
    return status if isinstance(status, int) else 0


def entry() -> None:
    sys.exit(main())
