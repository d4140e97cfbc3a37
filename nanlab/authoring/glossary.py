"""Generate the glossary's notebook, and link the first use of its words in every lesson.

A word that the lesson explains where it first stands, in bold, is left as it is; so is what stands in headings, code,
formulas and other links.
"""

import os
import re
from pathlib import Path

from nbformat import NotebookNode, v4

from nanlab import course
from nanlab.authoring import files
from nanlab.course.glossary import PAGE, Word, words

TITLE = """# Glossary

The words of the course, in the plainest words that are still right. Lessons link here where a word first stands."""
NOT_PROSE = ("links", "links-end", "sources")  # cells in which nothing is linked
_KEPT = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$|!?\[[^\]]*\]\([^)]*\)|<[^>]+>|https?://\S+|^#[^\n]*|^\s*\|?[-:| ]+\|?$",
    re.S | re.M,
)
_BOLD = re.compile(r"\*\*([^*]+)\*\*")


def slug(heading: str) -> str:
    """The anchor of a heading, as JupyterLab makes it."""
    return heading.strip().replace(" ", "-")


def notebook() -> NotebookNode:
    """The glossary as a notebook of one text cell a word."""
    cells = [v4.new_markdown_cell(TITLE, id="title")]
    for word in words().values():
        id_ = re.sub(r"[^a-z0-9]+", "-", word.name.lower())
        id_ = f"word-{id_}"
        cells.append(v4.new_markdown_cell(f"## {word.name}\n\n{word.says}", id=id_, metadata={"editable": False}))
    return v4.new_notebook(cells=cells)


def generate(root: Path, *, check: bool = False) -> list[Path]:
    """Bring the glossary and the links to it under `root` up to date; returns what was not. `check` writes nothing."""
    stale = []
    for path, made in [(root / PAGE, notebook()), *_lessons(root)]:
        if not path.is_file() or path.read_text(encoding="utf-8") != files.text_of(made):
            stale.append(path)
            if not check:
                files.write(made, path)
    return stale


def _lessons(root: Path) -> list[tuple[Path, NotebookNode]]:
    made = []
    for track in course.TRACKS:
        for topic in course.lessons(root, track):
            path = root / course.lesson_path(track, topic.name)
            lesson = files.read(path)
            link(lesson, track, Path(os.path.relpath(root / PAGE, path.parent)).as_posix())
            made.append((path, lesson))
    return made


def link(lesson: NotebookNode, track: str, target: str) -> None:
    """Link the first use of each word of `track` in `lesson` to the glossary at `target`, in place, instead of
    the links that were there."""
    texts = [cell for cell in lesson.cells if cell.cell_type == "markdown" and cell.id not in NOT_PROSE]
    for cell in texts:
        cell.source = re.sub(rf"\[([^\]]*)\]\({re.escape(target)}#[^)]*\)", r"\1", cell.source)
    wanted = [word for word in words().values() if track in word.depths]
    for word in sorted(wanted, key=lambda word: -len(word.name)):  # "gradient norm" before "gradient"
        for cell in texts:
            if (found := _first(cell.source, word)) is not None:
                start, stop = found
                if start < stop:
                    shown = cell.source[start:stop]
                    cell.source = f"{cell.source[:start]}[{shown}]({target}#{word.anchor}){cell.source[stop:]}"
                break


def _first(source: str, word: Word) -> tuple[int, int] | None:
    """Where `word` first stands in the prose of `source`; an empty place when it is explained there, in bold."""
    names = "|".join(re.escape(name) for name in sorted((word.name, *word.also), key=len, reverse=True))
    kept = [match.span() for match in _KEPT.finditer(source)]
    bold = [match.span() for match in _BOLD.finditer(source)]
    for match in re.finditer(rf"(?<![\w-])(?:{names})(?![\w-])", source, re.I):
        elsewhere = match[0].isupper() and match[0] not in names  # CLIP is a model's name
        if elsewhere or any(start <= match.start() < stop for start, stop in kept):
            continue
        explained = any(start <= match.start() < stop for start, stop in bold)
        return (match.start(), match.start() if explained else match.end())
    return None
