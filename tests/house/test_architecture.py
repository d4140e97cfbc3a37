"""The diagrams in ARCHITECTURE.md are what the imports say. A failing test prints the diagram to paste."""

import re

import networkx
import pytest


def rooms(imports: networkx.DiGraph, inside: str) -> networkx.DiGraph:
    """The folders and files directly in the package `inside` with the imports between them; an import that follows
    from two others is left out."""
    drawn = networkx.DiGraph()
    for a, b in imports.edges:
        ends = [name.removeprefix(f"{inside}.").split(".")[0] for name in (a, b) if name.startswith(f"{inside}.")]
        if len(set(ends)) == 2 and "__main__" not in ends:
            drawn.add_edge(*ends)
    return networkx.transitive_reduction(drawn)


def diagram(drawn: networkx.DiGraph) -> str:
    return "\n".join(["flowchart TD", *(f"    {a} --> {b}" for a, b in sorted(drawn.edges))])


@pytest.mark.parametrize("inside", ["nanlab", "nanlab.detect", "nanlab.doctor"])
def test_diagram_shows_the_imports(inside, imports, root):
    page = (root / "ARCHITECTURE.md").read_text("utf-8")
    shown = re.search(rf"<!-- {re.escape(inside)} -->\n```mermaid\n(.*?)\n```", page, re.DOTALL)
    assert shown and shown[1] == diagram(rooms(imports, inside)), diagram(rooms(imports, inside))
