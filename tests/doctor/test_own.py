"""nanlab's own reports are read exactly: the real tool is run, and its real output is fed to the doctor."""

import json
import subprocess
import sys

import pytest

from nanlab.doctor import diagnose

PROGRAM = """
import torch
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    y = model(torch.ones(2, 3))
    d = (y - y).sum()
    loss = y.square().mean() + (d / d if step == BAD else d)
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())
"""


@pytest.fixture(scope="module")
def hunted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hunted")
    found = {}
    for name, bad in (("bad", "3"), ("good", "99")):
        (folder / f"{name}.py").write_text(PROGRAM.replace("BAD", bad), "utf-8")
        command = [sys.executable, "-m", "nanlab", "hunt", f"{name}.py", "--json", f"{name}.json"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        found[name] = (done.stdout + done.stderr, (folder / f"{name}.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize("form", [0, 1], ids=["text", "json"])
def test_a_finding_of_the_hunt_is_taken_as_it_stands(hunted, form):
    answer, report = diagnose(hunted["bad"][form]), json.loads(hunted["bad"][1])
    assert (answer.verdict, answer.first_bad_step, answer.step_is) == ("fault", report["step"], "read")
    assert (answer.suspects[0].name, answer.suspects[0].band) == (report["suspect"], "named")


@pytest.mark.parametrize("form", [0, 1], ids=["text", "json"])
def test_a_hunt_that_found_nothing_is_no_fault(hunted, form):
    assert diagnose(hunted["good"][form]).verdict == "no-nan"
