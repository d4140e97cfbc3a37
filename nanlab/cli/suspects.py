"""``nanlab suspects``: the table of usual suspects in a terminal."""

import click

from nanlab import suspects


@click.command("suspects")
@click.argument("names", nargs=-1, type=click.Choice(list(suspects.SUSPECTS)), metavar="[NAME]...")
@click.option("--markdown", is_flag=True, help="Print a Markdown table instead.")
def command(names: tuple[str, ...], markdown: bool) -> None:
    """Show the usual suspects: cause, signature, fix, wrong fix, lesson."""
    table = suspects.table(*names)
    click.echo(table.markdown() if markdown else str(table))
