"""Make static pages of the course, for readers who install nothing: ``nanlab author site``.

Sphinx with MyST-NB and the theme Furo makes the pages from the notebooks as they are stored; nothing is run. What
JupyterLab keeps hidden, the outcome of a prediction and source that teaches nothing, is folded. The pages work from a
folder and on any static host; their search needs no server.
"""

import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files as resources
from importlib.util import find_spec
from pathlib import Path

import nbformat
from jinja2 import Environment
from nbformat import NotebookNode

from nanlab import course
from nanlab.authoring import files, poster

NEEDS = ("sphinx", "myst_nb", "furo", "sphinx-mathjax-offline")
ROOMS = ("notebooks", "exercises")
FOLDED = {"outputs_hidden": "hide-output", "source_hidden": "hide-input"}  # JupyterLab's metadata: MyST-NB's tag
SETTINGS = {
    "project": "nanlab",
    "html_title": "nanlab: find the first NaN",
    "extensions": ["myst_nb", "sphinx-mathjax-offline"],
    "html_theme": "furo",
    "nb_execution_mode": "off",
    "nb_code_prompt_show": "Show the {type}",
    "nb_code_prompt_hide": "Hide the {type}",
    "myst_enable_extensions": ["dollarmath"],
    "myst_heading_anchors": 4,
    "myst_heading_slug_func": "nanlab.authoring.glossary.slug",
    "html_static_path": ["static"],
    "html_css_files": ["narrow.css"],
    "html_copy_source": False,
    "html_show_sphinx": False,
    "html_show_copyright": False,
}

NARROW = "@media (max-width: 46em) { pre { white-space: pre-wrap; overflow-wrap: anywhere; } }"  # keys can't scroll it


class SiteError(Exception):
    """The pages could not be made; the message says why."""


def build(root: Path, out: Path) -> int:
    """Write the pages of the course at `root` into the folder `out`; returns how many notebooks they show.

    `out` is made where it is missing, and what an earlier build left there is replaced once the new pages are whole.
    Raises SiteError without Sphinx, for an `out` that holds something else, and where Sphinx warns: of a dead link, or
    of a notebook that it can't read. Takes about a third of a second a notebook.
    """
    if out.exists() and any(out.iterdir()) and not (out / "searchindex.js").is_file():
        raise SiteError(f"{out} holds something that is no earlier build of the pages; name an empty folder")
    paths = files.find(root, *ROOMS)
    with tempfile.TemporaryDirectory() as made:
        source, pages = Path(made, "source"), Path(made, "pages")
        for path in paths:
            _lay(path, source / path.relative_to(root))
        if (root / poster.PLACE).is_file():  # lessons link to it
            shutil.copy(root / poster.PLACE, source / poster.PLACE)
        (source / "index.md").write_text(_index(root, paths), encoding="utf-8")
        _sphinx(source, pages)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(pages, out, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo", "objects.inv"))
    return len(paths)


def _lay(path: Path, copy: Path) -> None:
    """A copy of the notebook at `path` in which what is hidden is folded and every picture says what it shows."""
    notebook = files.read(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            hidden = cell.metadata.get("jupyter", {})
            cell.metadata["tags"] = sorted(files.tags(cell) | {tag for key, tag in FOLDED.items() if hidden.get(key)})
            if alternative := _alternative(cell):
                cell.metadata["mystnb"] = {"image": {"alt": alternative}}
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(nbformat.writes(notebook), encoding="utf-8")


def _alternative(cell: NotebookNode) -> str:
    """The words that a picture among the outputs of `cell` is stored with."""
    texts = [o.data.get("text/plain", "") for o in cell.outputs if "image/png" in o.get("data", {})]
    return " ".join(" ".join(texts).split())


def _index(root: Path, paths: list[Path]) -> str:
    """The first page, in MyST Markdown: every lesson at every depth, and the lists that make the menu."""
    template = resources("nanlab.authoring").joinpath("site.md.jinja").read_text("utf-8")
    names = {track: {topic.name for topic in course.lessons(root, track)} for track in course.TRACKS}
    topics = [topic for topic in course.TOPICS if any(topic.name in there for there in names.values())]
    pages = [path.relative_to(root).with_suffix("").as_posix() for path in paths]
    others = [page for page in pages if page.count("/") == 1 and page.startswith("notebooks/")]
    exercises = [page for page in pages if page.startswith("exercises/")]
    page = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True).from_string(template)
    return page.render(course=course, topics=topics, names=names, others=others, exercises=exercises)


def _sphinx(source: Path, pages: Path) -> None:
    """In a process of its own: Sphinx sets the locale and more for the whole of the one that it runs in."""
    for name in NEEDS:
        if find_spec(name) is None:
            raise SiteError(f"making pages needs {name}: pip install 'nanlab[site]'")
    settings = "".join(f"{name} = {value!r}\n" for name, value in SETTINGS.items())
    (source / "conf.py").write_text(settings, encoding="utf-8")
    (source / "static").mkdir()
    (source / "static/narrow.css").write_text(NARROW, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-N", "-W", "--keep-going", "-b", "html", str(source), str(pages)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        raise SiteError((made.stderr or made.stdout).replace(f"{source}/", "").strip())
