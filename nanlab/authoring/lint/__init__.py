"""Hold a notebook to the course's style: budgets of lines and words, and what would break on another machine."""

from pathlib import Path

from nanlab.authoring import files
from nanlab.authoring.lint import code, outputs, shape, text
from nanlab.authoring.lint.finding import Finding, Page

__all__ = ["Finding", "lint"]


def lint(path: Path) -> list[Finding]:
    """Everything at `path` that the style forbids, and notes about what it advises; empty when there is nothing.

    Raises ValueError when `path` is no notebook. Reads the file alone: runs nothing.
    """
    page = Page(path, files.read(path))
    return [finding for rules in (shape, text, code, outputs) for finding in rules.check(page)]
