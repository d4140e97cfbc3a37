"""The README opens with a program and what nanlab prints about it; this holds the two together."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_opening_program_prints_what_the_readme_shows(tmp_path):
    program, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.S).groups()
    (tmp_path / "padding.py").write_text(program)
    ran = subprocess.run([sys.executable, "padding.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == printed


def test_the_opening_program_has_six_lines():
    program = re.search(r"```python\n(.*?)```", README, re.S)[1]
    assert len([line for line in program.splitlines() if line.strip()]) <= 6
