"""``nanlab author``: what people who write lessons use."""

from pathlib import Path

import click

_NOTEBOOKS = click.argument(
    "notebooks", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
_CHECK = click.option("--check", is_flag=True, help="Write nothing; fail when something is out of date.")
_ROOT = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The repository (default: the one around).",
)


@click.group()
def command() -> None:
    """Store, link and check the course's notebooks, and make pages of them."""


@command.command()
@_NOTEBOOKS
@click.option("--limit", default=300.0, show_default=True, help="Seconds for one run of a notebook.")
@click.option("--shaken", "seeds", default=3, show_default=True, help="Runs with results moved in the last place.")
def store(notebooks: tuple[Path, ...], limit: float, seeds: int) -> int:
    """Run each notebook from top to bottom and store its outputs, unless another processor would print other ones."""
    from nanlab.authoring.store import StoreError
    from nanlab.authoring.store import store as run_and_store

    status = 0
    for path in notebooks:
        try:
            changed = run_and_store(path, limit, seeds)
            click.echo(f"{path}: {'stored' if changed else 'unchanged'}")
        except (StoreError, ValueError) as error:
            click.echo(str(error), err=True)
            status = 1
    return status


@command.command()
@_CHECK
@_ROOT
def links(check: bool, root: Path | None) -> int:
    """Generate the links between lessons, the glossary, and the links to it."""
    from nanlab.authoring import glossary
    from nanlab.authoring import links as generator

    place = root or _root()
    stale = {*generator.generate(place, check=check), *glossary.generate(place, check=check)}
    return _report(sorted(stale), check, "nanlab author links")


@command.command()
@_CHECK
@_ROOT
def exercises(check: bool, root: Path | None) -> int:
    """Generate the exercises from their solutions."""
    from nanlab.authoring import exercises as generator

    return _report(generator.generate(root or _root(), check=check), check, "nanlab author exercises")


@command.command()
@_NOTEBOOKS
def lint(notebooks: tuple[Path, ...]) -> int:
    """Hold notebooks to the style: budgets, and what would break elsewhere."""
    from nanlab.authoring.lint import lint as check_style

    findings = [finding for path in notebooks for finding in check_style(path)]
    for finding in findings:
        click.echo(str(finding))
    errors = sum(not finding.note for finding in findings)
    click.echo(f"{len(notebooks)} notebooks, {errors} errors, {len(findings) - errors} notes")
    return 1 if errors else 0


@command.command()
@_ROOT
def poster(root: Path | None) -> int:
    """Make notebooks/poster.pdf from the table of suspects."""
    from nanlab.authoring.poster import PLACE, PosterError, make

    try:
        make((root or _root()) / PLACE)
    except PosterError as error:
        click.echo(str(error), err=True)
        return 1
    click.echo(f"{PLACE}: made")
    return 0


@command.command()
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@_ROOT
def site(out: Path, root: Path | None) -> int:
    """Make static pages of the course in the folder OUT."""
    from nanlab.authoring.site import SiteError, build

    try:
        count = build(root or _root(), out)
    except SiteError as error:
        click.echo(str(error), err=True)
        return 1
    click.echo(f"{count} notebooks: open {out / 'index.html'}")
    return 0


def _report(stale: list[Path], check: bool, command_line: str) -> int:
    for path in stale:
        click.echo(f"{path}: {'out of date, run: ' + command_line if check else 'updated'}")
    return 1 if stale and check else 0


def _root() -> Path:
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "notebooks").is_dir() and (folder / "nanlab").is_dir():
            return folder
    raise click.UsageError("no folder around this one holds notebooks/ and nanlab/; name it with --root")
