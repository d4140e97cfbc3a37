"""``nanlab hunt`` on unchanged scripts: what it finds, says and returns, and that the script never notices."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from nanlab.cli import main

STEP = """
import sys, torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(6):
    x = torch.randn(4, 3)
    if i == 3:
        x[1] = 0
    optimizer.zero_grad()
    loss = (model(x) / x.norm(dim=1, keepdim=True)).mean()  # BAD
    loss.backward()
    optimizer.step()
    print("step", i)
"""


@pytest.fixture
def hunt(tmp_path, monkeypatch, capfd):
    """Writes a script, hunts it, and gives back exit status, report, standard output, standard error and the number of
    the line marked ``# BAD``."""
    monkeypatch.chdir(tmp_path)

    def run(source: str, *options: str, args: tuple[str, ...] = ()) -> "Ran":
        source = textwrap.dedent(source)
        Path("script.py").write_text(source)
        status = main(["hunt", *options, "script.py", *args, "--json", "out.json"])
        out, err = capfd.readouterr()
        report = json.loads(Path("out.json").read_text()) if Path("out.json").exists() else None
        Path("out.json").unlink(missing_ok=True)
        line = next((n for n, text in enumerate(source.splitlines(), 1) if text.endswith("# BAD")), None)
        return Ran(status, report, out, err, line)

    return run


class Ran:
    def __init__(self, status, report, out, err, line):
        self.status, self.report, self.out, self.err, self.line = status, report, out, err, line

    def at(self, step: int, where: str, form: str) -> bool:
        r = self.report
        return self.status == 1 and (r["step"], r["where"], r["form"], r["line"]) == (step, where, form, self.line)


def test_the_first_bad_step_is_found_with_its_line_and_nothing_runs_after_it(hunt):
    ran = hunt(STEP)
    assert ran.at(3, "loss", "x/0")
    assert ran.out == "step 0\nstep 1\nstep 2\n"
    assert "script.py:12" in ran.err
    assert "hunted from the first line" in ran.err
    assert ran.report["verdict"] == "non-finite"
    assert Path(ran.report["file"]).name == "script.py"
    assert {"op", "module", "element", "suspect", "lesson", "confirmed_by", "mode"} <= set(ran.report)


def test_a_finite_run_ends_with_0_and_an_empty_report(hunt):
    ran = hunt(STEP.replace("i == 3", "i == 99"))
    assert ran.status == 0
    assert (ran.report["verdict"], ran.report["line"], ran.report["steps"]) == ("finite", None, 6)
    assert ran.out.count("step") == 6


def test_what_is_not_the_tools_goes_to_the_script(hunt):
    ran = hunt(
        "import sys; print(sys.argv, __name__, __file__)", args=("--epochs", "3", "-v", "--lr=2", "data", "--help")
    )
    assert ran.out == "['script.py', '--epochs', '3', '-v', '--lr=2', 'data', '--help'] __main__ script.py\n"
    ran = hunt("import sys; print(sys.argv[1:])", args=("--", "--every-step"))
    assert ran.out == "['--every-step', '--json', 'out.json']\n"


def test_the_scripts_folder_comes_first_on_the_path_and_everything_is_put_back(hunt, tmp_path):
    optim = torch.optim.Optimizer
    before = (sys.argv, sys.path[:], sys.modules["__main__"], torch.autograd.backward, optim.zero_grad, optim.__init__)
    (tmp_path / "beside.py").write_text("name = 'a module beside it'")
    ran = hunt("import sys, beside; print(beside.name, sys.modules['__main__'].__dict__ is globals())")
    sys.modules.pop("beside")
    assert ran.out == "a module beside it True\n"
    after = (sys.argv, sys.path[:], sys.modules["__main__"], torch.autograd.backward, optim.zero_grad, optim.__init__)
    assert before == after


def test_a_script_that_fails_by_itself_keeps_its_own_traceback(hunt):
    ran = hunt("""
        def inner():
            raise ValueError("its own fault")
        inner()
    """)
    assert ran.status == 3
    assert ran.report["verdict"] == "finite"
    trace = ran.err[: ran.err.index("nanlab:")]
    assert trace.splitlines()[0] == "Traceback (most recent call last):"
    assert trace.count("File ") == 2
    assert "scripthunt" not in trace
    assert "runpy" not in trace
    assert trace.endswith("ValueError: its own fault\n")


def test_a_syntax_error_is_the_scripts_failure(hunt):
    ran = hunt("def (")
    assert ran.status == 3
    assert "SyntaxError" in ran.err


@pytest.mark.parametrize(("code", "status"), [("0", 0), ("", 0), ("5", 3), ("'a reason'", 3)])
def test_the_scripts_own_exit_is_respected(hunt, code, status):
    ran = hunt(f"import sys; print('before'); sys.exit({code})")
    assert ran.status == status
    assert ran.out == "before\n"
    assert ("a reason" in ran.err) == ("reason" in code)


def test_a_missing_script_a_wrong_option_and_a_folder_that_is_not_there_are_usage_errors(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit('must not run')")
    assert main(["hunt", str(tmp_path / "none.py")]) == 2
    assert main(["hunt", "--no-such", str(script)]) == 2
    assert main(["hunt", str(script), "--json", str(tmp_path / "none" / "out.json")]) == 2
    assert main(["hunt", str(script), "--from-step", "-1"]) == 2
    assert main(["hunt", str(script), "--scene", str(script)]) == 2
    assert "must not run" not in capsys.readouterr().err


def test_a_script_may_swallow_exceptions_and_still_is_stopped(hunt):
    body = STEP.replace("    loss.backward()", "    try:\n        loss.backward()\n    except Exception:\n        pass")
    assert hunt(body).at(3, "loss", "x/0")


def test_a_bare_except_cannot_hide_what_was_found(hunt):
    body = STEP.replace("    loss.backward()", "    try:\n        loss.backward()\n    except:\n        pass")
    ran = hunt(body)
    assert ran.at(3, "loss", "x/0")


def test_a_nan_made_while_the_data_was_built_is_an_input_at_the_line_that_made_it(hunt):
    ran = hunt("""
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        raw = torch.zeros(4, 3)
        data = [torch.ones(4, 3), raw / raw.std()]  # BAD
        for x in data:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
    """)
    assert ran.at(1, "input", "0/0")
    assert any("made before the step" in note for note in ran.report["notes"])


def test_weights_that_were_never_initialised_are_found_before_the_first_step(hunt):
    ran = hunt("""
        import torch
        from torch import nn
        class Bank(nn.Module):
            def __init__(self):
                super().__init__()
                memory = torch.empty(6, 4)
                memory[:5] = 0.1
                memory[5] = float("nan")  # BAD
                self.table = nn.Parameter(memory)
            def forward(self, i):
                return self.table[i]
        bank = Bank()
        optimizer = torch.optim.SGD(bank.parameters(), lr=0.1)
        for i in range(5):
            optimizer.zero_grad()
            bank(torch.tensor([i % 3, 2])).sum().backward()
            optimizer.step()
    """)
    assert ran.at(0, "weights", "nan_in")
    assert ran.report["element"] == [5, 0]


def test_an_optimizer_that_makes_the_nan_is_found_in_its_step(hunt):
    ran = hunt("""
        import torch
        from torch import nn
        model = nn.ModuleDict({"used": nn.Linear(3, 1), "idle": nn.Linear(3, 1)})
        optimizer = torch.optim.Adam(model.parameters(), eps=0.0)
        for i in range(4):
            optimizer.zero_grad()
            x = torch.ones(2, 3)
            (model["used"](x).sum() + model["idle"](x).sum() * (i < 2) * 0 + (i < 2) * 0).backward()
            if i < 2:
                model["idle"].zero_grad()
            optimizer.step()  # BAD
    """)
    assert ran.status == 1
    assert (ran.report["where"], ran.report["form"], ran.report["line"]) == ("weights", "0/0", ran.line)


def test_a_second_moment_that_overflows_is_found(hunt):
    ran = hunt("""
        import torch
        w = torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.Adam([w])
        for i in range(4):
            optimizer.zero_grad()
            (w * (1e21 if i == 2 else 1.0)).sum().backward()
            optimizer.step()  # BAD
    """)
    assert (ran.status, ran.report["step"], ran.report["where"]) == (1, 2, "optimizer_state")


def test_a_running_statistic_that_turns_bad_is_found_in_the_step_that_spoils_it(hunt):
    ran = hunt("""
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(3, 1)
                self.register_buffer("spread", torch.ones(()))
            def forward(self, x):
                self.spread.lerp_(x.square().mean(), 0.1)  # BAD
                return self.lin(x.clamp(max=1))
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for i in range(6):
            optimizer.zero_grad()
            net(torch.ones(1, 3) if i != 2 else torch.full((1, 3), 3e38)).mean().backward()
            optimizer.step()
    """)
    assert (ran.status, ran.report["step"], ran.report["line"]) == (1, 2, ran.line)


def test_a_script_without_module_and_optimizer_counts_its_backward_calls(hunt):
    ran = hunt("""
        import torch
        w = torch.ones(3, requires_grad=True)
        for i in range(5):
            loss = (w * i).sum() / (3 - i) if i < 3 else (w - w.detach()).sum().log()  # BAD
            loss.backward()
            with torch.no_grad():
                w -= 0.01 * w.grad
            w.grad = None
    """)
    assert ran.at(3, "loss", "log(0)")


def test_micro_batches_of_an_accumulation_are_one_step(hunt):
    ran = hunt("""
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.Adam(model.parameters())
        for i in range(12):
            x = torch.randn(4, 3) * (i not in (2, 9))
            unit = x / x.norm(dim=1, keepdim=True) if i != 2 else x
            (model(unit).mean() / 4).backward()
            if i % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
    """)
    assert (ran.status, ran.report["step"]) == (1, 2)


def test_a_gradient_that_the_script_mends_itself_is_no_alarm(hunt):
    ran = hunt("""
        import torch
        w = torch.nn.Parameter(torch.zeros(3))
        optimizer = torch.optim.SGD([w], lr=0.1)
        for i in range(4):
            optimizer.zero_grad()
            w.pow(2).sum().sqrt().backward()
            w.grad.nan_to_num_()
            optimizer.step()
    """)
    assert ran.status == 0


def test_masks_and_buffers_that_start_as_nan_are_no_alarm(hunt):
    ran = hunt("""
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(4, 4)
                self.register_buffer("last", torch.full((4,), float("nan")))
                mask = torch.ones(4, 4).triu(1).bool()
                self.register_buffer("mask", torch.zeros(4, 4).masked_fill(mask, float("-inf")))
            def forward(self, x):
                self.last.copy_(x[0])
                return (torch.softmax(x @ x.T + self.mask, -1) @ self.lin(x) + self.last).sum()
        net = Net()
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(4):
            optimizer.zero_grad()
            net(torch.randn(4, 4)).backward()
            optimizer.step()
    """)
    assert ran.status == 0


def test_a_scaler_that_skips_steps_is_no_alarm(hunt):
    ran = hunt("""
        import torch
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126)
        for _ in range(6):
            optimizer.zero_grad()
            scaler.scale(model(torch.ones(2, 3)).sum() * 1e3).backward()
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() < 2.0**126
    """)
    assert ran.status == 0
    assert ran.report["steps"] == 6


def test_a_script_that_looks_at_its_own_loss_and_raises_is_explained(hunt):
    ran = hunt("""
        import torch
        w = torch.nn.Parameter(torch.zeros(3))
        loss = torch.log(w).sum()  # BAD
        if not torch.isfinite(loss):
            raise RuntimeError(f"loss is {loss.item()}")
        loss.backward()
    """)
    assert ran.at(0, "loss", "log(0)")
    assert "loss is -inf" in ran.err


@pytest.mark.parametrize("end", ["raise ValueError('nan')", "sys.exit('nan')", "assert False"])
def test_a_script_that_tests_its_loss_without_reading_it_is_explained(hunt, end):
    ran = hunt(f"""
        import sys, torch
        w = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([w], lr=0.5)
        for i in range(5):
            optimizer.zero_grad()
            loss = torch.log(w).sum()  # BAD
            if torch.isnan(loss):
                {end}
            (w.sum() + 0 * w.sum()).backward()
            optimizer.step()
    """)
    assert (ran.status, ran.report["step"], ran.report["line"]) == (1, 3, ran.line)


def test_a_failure_that_has_nothing_to_do_with_numbers_stays_the_scripts(hunt):
    ran = hunt("""
        import torch
        print((torch.zeros(1) / 0).item())
        w = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([w], lr=0.5)
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        {}["missing"]
    """)
    assert ran.status == 3


def test_a_script_that_only_computes_is_explained_by_what_it_reads(hunt):
    ran = hunt("""
        import torch
        x = torch.zeros(3)
        print((x / x.norm()).sum().item())  # BAD
    """)
    assert ran.status == 1
    assert (ran.report["form"], ran.report["line"]) == ("0/0", ran.line)
    assert hunt("import torch\nprint(torch.tensor(float('inf')).item())").status == 0


def test_it_can_wait_for_a_step_and_hunt_from_there(hunt):
    ran = hunt(STEP, "--from-step", "2")
    assert ran.at(3, "loss", "x/0")
    assert ran.report["mode"] == "hunted from step 2"
    late = hunt(STEP, "--from-step", "4")
    assert late.report["verdict"] == "non-finite"
    assert (late.report["step"], late.report["line"]) == (3, None)


def test_standard_input_still_reaches_the_script_and_folders_are_made_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import os\nos.mkdir('made')\nopen('made/log', 'a').write(input('? '))\n" + STEP)
    ran = run_command(tmp_path, "script.py", "--json", "out.json", given="an answer\n")
    assert ran.returncode == 1
    if sys.platform == "linux":
        assert json.loads((tmp_path / "out.json").read_text())["confirmed_by"] == ["operand patched"]
    assert (tmp_path / "made" / "log").read_text() == "an answer"
    assert ran.stdout.startswith("? step 0")


def test_interrupting_the_script_interrupts_the_command(hunt):
    ran = hunt("raise KeyboardInterrupt")
    assert ran.status == 130
    assert "Interrupted" in ran.err


def run_command(folder: Path, *args: str, given: str = "") -> subprocess.CompletedProcess:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-m", "nanlab", "hunt", *args], cwd=folder, env=env, input=given,
                          capture_output=True, text=True, timeout=110, check=False)  # fmt: skip


SLOW = """
import os, sys, torch
from torch import nn
import nanlab.detect.scripts.pace as pace
pace.FREE, pace.TOO_SLOW = 0.0, 0.0  # decide at once, and against hunting
os.mkdir("made")
log = open("made/log", "w")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
for i in range(60):
    x = torch.randn(4, 3)
    if i == int(sys.argv[1]):
        x[2] = 0
    optimizer.zero_grad()
    loss = (model(x) / x.norm(dim=1, keepdim=True)).mean()  # BAD
    loss.backward()
    optimizer.step()
    log.write(f"{i}\\n")
    print(i)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="snapshots need Linux")
@pytest.mark.parametrize("bad", [1, 37])
def test_where_hunting_is_too_slow_a_snapshot_runs_the_failing_steps_again(tmp_path, bad):
    (tmp_path / "script.py").write_text(SLOW)
    ran = run_command(tmp_path, "script.py", str(bad), "--json", "out.json")
    report = json.loads((tmp_path / "out.json").read_text())
    assert ran.returncode == 1, ran.stderr
    assert (report["step"], report["line"], report["form"]) == (bad, 16, "x/0")
    assert ran.stdout.split() == [str(i) for i in range(bad)]  # the replay printed nothing
    assert (tmp_path / "made" / "log").read_text().split() == ran.stdout.split()
    assert report["confirmed_by"] == ["operand patched"]
    if bad > 30:
        assert "guarded with" in report["mode"]
        assert any("reproduced" in note for note in report["notes"])


@pytest.mark.skipif(sys.platform != "linux", reason="snapshots need Linux")
def test_what_a_snapshot_cannot_reproduce_is_said(tmp_path):
    clock = SLOW.replace("if i == int(sys.argv[1]):", "if i == 40 and os.getpid() == first:").replace(
        "import os, sys, torch", "import os, sys, torch\nfirst = os.getpid()"
    )
    (tmp_path / "script.py").write_text(clock)
    ran = run_command(tmp_path, "script.py", "0", "--json", "out.json")
    report = json.loads((tmp_path / "out.json").read_text())
    assert (ran.returncode, report["verdict"], report["step"]) == (1, "not-reproduced", 40)
    assert "--from-step 40" in ran.stderr


def test_a_saved_scene_is_replayed_under_a_script_that_uses_the_guard(hunt, tmp_path):
    source = """
        import sys, torch
        from torch import nn
        from nanlab import guard
        torch.manual_seed(int(sys.argv[1]))
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        optimizer = torch.optim.Adam(model.parameters())
        data = [torch.randn(4, 3) for _ in range(5)]
        if sys.argv[2] == "bad":
            data[3][1] = 0
        for x in guard(data, model, optimizer, on_failure="save", scene="scene.pt"):
            optimizer.zero_grad()
            (model(x) / x.norm(dim=1, keepdim=True)).mean().backward()  # BAD
            optimizer.step()
    """
    first = hunt(source, args=("0", "bad"))
    assert first.at(3, "loss", "x/0") or first.at(3, "loss", "0/0")
    assert Path("scene.pt").exists()
    assert "The scene is saved" in first.err
    again = hunt(source, "--scene", "scene.pt", args=("1", "good"))
    assert (again.status, again.report["step"], again.report["line"]) == (1, 3, again.line)
    assert "Replayed from the scene of step 3" in again.err


def test_a_saved_scene_is_replayed_under_a_script_with_a_data_loader(hunt, tmp_path):
    from nanlab import Scene

    x = torch.ones(4, 3)
    x[2] = 0
    Scene.capture(torch.nn.Linear(3, 1), None, x, step=7).save("scene.pt")
    ran = hunt("""
        import torch
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.utils.data.DataLoader(torch.ones(8, 3), batch_size=4):
            optimizer.zero_grad()
            (model(x) / x.norm(dim=1, keepdim=True)).mean().backward()  # BAD
            optimizer.step()
    """, "--scene", "scene.pt")  # fmt: skip
    assert (ran.status, ran.report["line"]) == (1, ran.line)


AFTER_THE_LOSS = """
import torch
w = torch.nn.Parameter(torch.tensor([0.6, -0.1])); opt = torch.optim.SGD([w], 0.1)
for _ in range(3):
    y = torch.where(w > 0, w.sqrt(), torch.zeros_like(w))
    loss = y.sum(); opt.zero_grad(); loss.backward(); opt.step()
"""


def test_gradients_cleared_after_the_loss_do_not_make_the_forward_pass_a_thing_of_the_past(tmp_path):
    (tmp_path / "late_clear.py").write_text(AFTER_THE_LOSS)
    assert main(["hunt", str(tmp_path / "late_clear.py"), "--json", str(tmp_path / "out.json")]) == 1
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["line"], found["form"], found["where"]) == (5, "sqrt(<0)", "loss")


def test_a_report_that_cannot_be_written_says_so_in_a_line(tmp_path, capsys):
    (tmp_path / "fine.py").write_text("print('fine')")
    (tmp_path / "out.json").symlink_to(tmp_path / "missing" / "out.json")
    assert main(["hunt", str(tmp_path / "fine.py"), "--json", str(tmp_path / "out.json")]) == 2
    assert "could not be written" in capsys.readouterr().err
