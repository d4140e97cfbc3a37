"""The words of the course, each in everyday words. They live in ``glossary.toml`` beside this file."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

PAGE = Path("notebooks/glossary.ipynb")


@dataclass(frozen=True)
class Word:
    """One word: what it `says`, other spellings that mean it, and the tracks whose lessons link its first use."""

    name: str
    says: str
    also: tuple[str, ...] = ()
    depths: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The fragment of a link to the word's heading, as JupyterLab makes it."""
        return self.name.replace(" ", "-")


@cache
def words() -> dict[str, Word]:
    """Every word by its name, in the order of the alphabet."""
    rows = tomllib.loads(files("nanlab.course").joinpath("glossary.toml").read_text("utf-8"))
    lists = ("also", "depths")
    made = {
        name: Word(name, row["says"], *(tuple(row.get(field, ())) for field in lists)) for name, row in rows.items()
    }
    return dict(sorted(made.items(), key=lambda item: item[0].lower()))
