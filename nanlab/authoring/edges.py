"""Numbers printed with a digit too many: their text differs between the plain run of a notebook and shaken ones."""

import re
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

_NUMBER = re.compile(r"((?<![\w.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:e[-+]?\d+)?)", re.IGNORECASE)
_COMPARED = ("text/plain", "text/html", "image/svg+xml")  # beside streams and errors: what nbval compares


def edges(plain: NotebookNode, shaken: Sequence[NotebookNode]) -> list[str]:
    """What differs between the outputs of `plain` and those of `shaken`, other runs of the same notebook.

    A sentence each: the cell, the number or line as `plain` has it and as the others have it, and to how many digits a
    number rounds to the same in all of them.
    """
    found: dict[str, None] = {}  # a number that stands in a text and in its HTML is told once
    for cell, *others in zip(*(run.cells for run in (plain, *shaken)), strict=True):
        for texts in zip(*(_texts(c) for c in (cell, *others)), strict=False):
            found.update(dict.fromkeys(f"cell '{cell.id}' prints {what}" for what in _differences(texts)))
        if len({len(_texts(c)) for c in (cell, *others)}) > 1:
            found[f"cell '{cell.id}' has not the same outputs"] = None
    return list(found)


def _texts(cell: NotebookNode) -> list[str]:
    texts: list[str] = []
    streams: dict[str, str] = {}
    for output in cell.get("outputs", []):
        if output.output_type == "stream":  # it may come in pieces
            streams[output.name] = streams.get(output.name, "") + output.text
        elif output.output_type == "error":
            texts.append(f"{output.ename}: {output.evalue}")
        else:
            texts += [output.data[kind] for kind in _COMPARED if kind in output.data]
    return [*streams.values(), *texts]


def _differences(texts: Sequence[str]) -> Iterator[str]:
    """The numbers in which `texts`, the plain one first, differ; the first such line where words differ too."""
    if len(set(texts)) == 1:
        return
    parts = [_NUMBER.split(text) for text in texts]
    if len({tuple(" ".join(p[::2]).split()) for p in parts}) > 1:  # a table pads its columns
        yield next(_told(lines) for lines in zip(*map(str.splitlines, texts), strict=False) if len(set(lines)) > 1)
        return
    for numbers in zip(*(p[1::2] for p in parts), strict=True):
        if len(set(numbers)) > 1:
            count = surviving(numbers)
            yield f"{_told(numbers)}: {count or 'no'} {'digit survives' if count == 1 else 'digits survive'}"


def _told(texts: Sequence[str]) -> str:
    plain, *others = dict.fromkeys(text.strip() for text in texts)
    return f"{plain}, shaken {' or '.join(others)}"


def surviving(numbers: Sequence[str]) -> int:
    """To how many significant digits `numbers`, as printed, round to the same."""
    values = [float(number.replace(",", "").replace("−", "-")) for number in numbers]
    most = max(sum(c.isdigit() for c in re.split("e", number, flags=re.IGNORECASE)[0]) for number in numbers)
    return next((n for n in range(most, 0, -1) if len({f"{value:.{n - 1}e}" for value in values}) == 1), 0)
