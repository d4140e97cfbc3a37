"""The rooms of nanlab import only downwards, and no file needs a file that needs it."""

import subprocess
import sys
from pathlib import Path

import networkx


def test_a_room_imports_only_from_lower_floors(root):
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_no_circle_of_files(imports):
    circles = [sorted(c) for c in networkx.strongly_connected_components(imports) if len(c) > 1]
    assert not circles, "\n".join("  ".join(circle) for circle in circles)
