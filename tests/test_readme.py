"""What the README shows works: its Python runs, its commands exist, its links lead to files, it keeps its length."""

import re
import shlex
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from nanlab.cli import cli

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LOG = "step 1 loss 2.31\nstep 2 loss 2.30\nstep 3 loss nan\n"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def commands() -> list[list[str]]:
    """Every command line of the README, in code blocks and in running text, as words."""
    lines = [line for block in (*blocks("sh"), *blocks("bash")) for line in block.splitlines()]
    lines += re.findall(r"`((?:nanlab|python3?|pytest|pip|conda) [^`]+)`", README)
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def surroundings() -> dict:
    """The names that the README's fragments take from the reader's own script."""
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    loader = [torch.randn(4, 3) for _ in range(3)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(batch):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model, "loader": loader, "optimizer": optimizer, "train_step": train_step, "batch": loader[0]}


@pytest.mark.parametrize("code", blocks("python"))
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # open(…).read(), as people write it
def test_its_python_runs(code, tmp_path, monkeypatch, capsys):
    """Each block in a folder of its own that holds a train.log."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.log").write_text(LOG)
    code = code.replace("    ...", "    train_step(batch)")  # where the reader's own loop body stands
    exec(compile(code, "README.md", "exec"), surroundings())


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_its_commands_exist(words):
    """A subcommand of ours exists with the options shown, and the files it names are there."""
    if words[0] == "nanlab":
        shown = CliRunner().invoke(cli, [*subcommand(words[1:]), "--help"])
        assert shown.exit_code == 0
        for option in (word for word in words if word.startswith("--") and words[1] != "hunt"):
            assert option in shown.output
    elif words[0].startswith("python"):
        assert words[1] == "start.py"
        assert all(f'"{word}"' in (ROOT / "nanlab/setup/command.py").read_text() for word in words[2:])
    else:
        assert words[0] in ("pytest", "pip", "conda", "git", "cd")
        assert all((ROOT / word).exists() for word in words if word.endswith((".ipynb", ".yml")))


def subcommand(words: list[str]) -> list[str]:
    """The words before the first option or file."""
    names = []
    for word in words:
        if not re.fullmatch("[a-z]+", word):
            break
        names.append(word)
    return names


def test_it_shows_commands_and_python():
    assert len(commands()) >= 3 and blocks("python")


def test_its_links_lead_to_files():
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", README)
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []


def test_it_keeps_its_length():
    assert len(README.splitlines()) <= 110
