from pathlib import Path

import grimp
import networkx
import pytest


@pytest.fixture(scope="session")
def imports() -> networkx.DiGraph:
    """Every import between two files of nanlab, those for type checking included."""
    graph = grimp.build_graph("nanlab", cache_dir=None)
    return networkx.DiGraph((a, b) for a in graph.modules for b in graph.find_modules_directly_imported_by(a))


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).parents[2]
