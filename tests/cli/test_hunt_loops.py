"""How loops really look: where the value is made in the body, and what the script does when it meets it."""

import json
import textwrap
from pathlib import Path

import pytest

from nanlab.cli import main

LOOP = """
import math, sys, torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1).to(torch.{dtype})
opt = torch.optim.SGD(net.parameters(), 1e-2)
for step in range(6):
    x = torch.rand(4, 3, dtype=torch.{dtype})
    if step == {bad}:
        x[0] = 0
    {first}
    share = x / x.sum(1, keepdim=True)  # BAD
    {second}
    loss = net(share).pow(2).mean()
    {third}
    {meets}
    loss.backward()
    opt.step()
"""
CLEAR, PLACES = "opt.zero_grad()", ("first", "second", "third")
ENDS = ("", "if torch.isnan(loss): break", "if not torch.isfinite(loss): raise RuntimeError(loss)",
        "if loss.isnan(): sys.exit(1)", "assert math.isfinite(loss.item())", "print(loss.item())")  # fmt: skip


@pytest.fixture
def hunt(tmp_path, monkeypatch, capfd):
    """Hunts a script; its exit status, its report, what it printed, and the line marked ``# BAD``."""
    monkeypatch.chdir(tmp_path)

    def run(source: str, *options: str):
        source = textwrap.dedent(source)
        Path("script.py").write_text(source)
        status = main(["hunt", "--json", "out.json", *options, "script.py"])
        line = next((n for n, text in enumerate(source.splitlines(), 1) if text.endswith("# BAD")), None)
        return status, json.loads(Path("out.json").read_text()), capfd.readouterr(), line

    return run


def loop(place: str = "first", meets: str = "", dtype: str = "float32", bad: int = 4) -> str:
    return LOOP.format(**{one: CLEAR if one == place else "pass" for one in PLACES}, meets=meets or "pass", dtype=dtype,
                       bad=bad)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("meets", ENDS)
def test_a_value_made_in_the_loop_is_its_own_lines_wherever_gradients_are_cleared(hunt, place, meets):
    status, report, _, line = hunt(loop(place, meets))
    assert (status, report["line"], report["step"], report["form"]) == (1, line, 4, "0/0")


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_the_same_in_other_formats(hunt, dtype):
    status, report, _, line = hunt(loop("third", "if loss.isnan(): break", dtype))
    assert (status, report["line"], report["step"]) == (1, line, 4)


@pytest.mark.parametrize("meets", ENDS)
def test_a_healthy_loop_stays_silent_whatever_it_looks_at(hunt, meets):
    status, report, _, _ = hunt(loop(meets=meets, bad=99))
    assert (status, report["verdict"], report["not_watched"], report["skipped_steps"]) == (0, "finite", [], [])


SKIP = "if torch.isnan(loss): continue"
CLIP = """loss.backward()
    if not torch.isfinite(nn.utils.clip_grad_norm_(net.parameters(), 1.0)):
        opt.zero_grad(); continue
    opt.step(); continue"""


@pytest.mark.parametrize("meets", [SKIP, CLIP])
def test_a_step_that_the_script_drops_is_counted_and_hunted_only_on_request(hunt, meets):
    status, report, said, line = hunt(loop(meets=meets))
    assert (status, report["verdict"], report["skipped_steps"]) == (0, "finite", [4])
    assert f"script.py:{line}" in said.err
    if meets == CLIP:
        status, report, _, line = hunt(loop(meets=meets), "--stop-at-skips")
        assert (status, report["line"], report["step"]) == (1, line, 4)


def test_an_optimizer_that_passes_over_bad_gradients_by_itself_is_no_failure(hunt):
    careful = """
class Careful(torch.optim.SGD):
    def step(self, closure=None):
        grads = [p.grad for group in self.param_groups for p in group["params"]]
        if all(torch.isfinite(g).all() for g in grads):
            super().step(closure)

opt ="""
    status, report, _, _ = hunt(
        loop().replace("opt =", careful.lstrip("\n"), 1).replace("= torch.optim.SGD(", "= Careful(")
    )
    assert (status, report["skipped_steps"]) == (0, [4])


def test_a_nan_in_validation_is_found_though_no_step_depends_on_it(hunt):
    status, report, said, line = hunt("""
        import torch
        net = torch.nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for epoch in range(3):
            opt.zero_grad(); net(torch.rand(4, 3)).pow(2).mean().backward(); opt.step()
            with torch.no_grad():
                x = torch.rand(4, 3) * (epoch != 1)
                print(net(x / x.sum(1, keepdim=True)).mean().item())  # BAD
    """)
    assert (status, report["line"], report["steps"]) == (1, line, 3)
    assert "no step of the training depends on it" in said.err.replace("\n            ", " ")


NUMPY = """
import numpy as np, torch
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, i):
        row = np.full(3, 2.0, np.float32) if i == 13 else np.arange(3, dtype=np.float32) + i
        return (row - row.mean()) / row.std()  # BAD
if __name__ == "__main__":
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), 0.01)
    for x in DataLoader(Rows(), batch_size=4, num_workers={workers}):
        opt.zero_grad()
        net(x).pow(2).mean().backward()
        opt.step()
"""


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("workers", [0, 2])
def test_what_numpy_makes_is_named_with_its_line_in_this_process_and_in_workers(hunt, workers, recwarn):
    status, report, _, line = hunt(NUMPY.format(workers=workers))
    assert (status, report["line"], report["step"], report["form"], report["where"]) == (1, line, 3, "0/0", "input")
    assert ("fetched again" in " ".join(report["notes"])) == bool(workers)
    if not workers:
        told = [(str(w.message), w.lineno) for w in recwarn if w.category is RuntimeWarning]
        assert ("invalid value encountered in divide", line) in told  # as NumPy says it


def test_gradients_of_torch_func_count_the_steps_of_a_loop_without_optimizer(hunt):
    status, report, _, line = hunt("""
        import torch
        from torch.func import grad
        def loss(w, x):
            return (w * x / x.norm()).sum()  # BAD
        w = torch.ones(3)
        for step in range(5):
            w = w - 0.1 * grad(loss)(w, torch.ones(3) * (step != 3))
            print(w.sum().item())
    """)
    assert (status, report["line"], report["step"]) == (1, line, 3)


def test_a_process_that_the_script_forks_is_left_alone_and_said_to_be_unwatched(hunt):
    status, report, said, _ = hunt(loop(bad=99) + """
import os
pid = os.fork()
if pid == 0:
    x = torch.zeros(1, requires_grad=True); (x / 0 * 0).sum().backward(); os.write(1, b"child done"); os._exit(0)
os.waitpid(pid, 0)
""")  # fmt: skip
    assert (status, report["not_watched"]) == (0, ["a process that the script started"])
    assert said.out == "child done"
    assert "finite so far" in said.err


def test_a_module_runs_as_python_m_runs_it(tmp_path, monkeypatch, capfd):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "part.py").write_text("name = 'its neighbour'")
    (tmp_path / "pack" / "run.py").write_text(
        "import sys\nfrom .part import name\nprint(name, sys.argv[1:]); sys.exit(7)"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["hunt", "--json", "out.json", "-m", "pack.run", "--epochs", "3", "-m"]) == 3
    said = capfd.readouterr()
    assert said.out == "its neighbour ['--epochs', '3', '-m']\n"
    assert "exit status 7" in said.err
    assert main(["hunt", "-m", "pack.missing"]) == 2


def test_an_interruption_keeps_what_was_found_so_far(hunt):
    status, report, said, _ = hunt(loop(meets="if step == 3: raise KeyboardInterrupt", bad=99))
    assert (status, report["verdict"], report["steps"], report["interrupted"]) == (130, "finite", 3, True)
    assert "Interrupted; finite so far" in said.err


def test_of_several_ranks_the_finding_survives_in_the_one_file(hunt, monkeypatch):
    for rank, bad in ((0, 99), (1, 4), (2, 99)):
        monkeypatch.setenv("RANK", str(rank))
        _, report, _, _ = hunt(loop(bad=bad))
    assert (report["verdict"], report["rank"], report["step"]) == ("non-finite", 1, 4)
