"""The scoreboard over a folder of labelled programs."""

import importlib.util
import json
import sys

import pytest

PROGRAM = '''"""A program for a test."""
import torch
import torch.nn as nn


def build():
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, [(torch.full((3, 4), float(i)),) for i in (2, 1, 0)]


def loss_fn(model, batch):
    direction = batch[0] / batch[0].norm(dim=1, keepdim=True)
    return model(direction).pow(2).mean()


if __name__ == "__main__":
    model, optimizer, batches = build()
    for step, batch in enumerate(batches):
        optimizer.zero_grad()
        loss = loss_fn(model, batch)
        loss.backward()
        optimizer.step()
        print(step, loss.item())
'''
LABEL = {"id": "1", "file": "one.py", "first_bad_step": 2, "first_bad_where": "forward", "first_bad_line": 14,
         "indeterminate_form": "0/0 (a note)", "visible_step": 2}  # fmt: skip


@pytest.fixture
def scoreboard(root, monkeypatch):
    spec = importlib.util.spec_from_file_location("scoreboard_under_test", root / "benchmarks" / "scoreboard.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "one.py").write_text(PROGRAM)
    (tmp_path / "clean.py").write_text(PROGRAM.replace("(2, 1, 0)", "(2, 1, 3)"))
    clean = {**LABEL, "id": "2", "file": "clean.py", "first_bad_step": None}
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, (LABEL, clean))))
    return tmp_path


def test_a_program_is_scored_against_its_label(scoreboard, folder):
    row = scoreboard.score(scoreboard.Program(LABEL, folder / "one.py"))
    assert (row.step, row.line, row.where, row.form, row.confirmed) == (True, "exact", True, True, True)
    assert row.per_op == "exact" and row.anomaly == "wrong line"


def test_a_wrong_line_and_a_false_alarm_are_counted_as_such(scoreboard, folder, capsys):
    labels = [{**LABEL, "first_bad_line": 15}, {**LABEL, "id": "2", "first_bad_step": None}]
    (folder / "labels.jsonl").write_text("\n".join(map(json.dumps, labels)))
    assert scoreboard.main([str(folder), "--json", str(folder / "rows.json")]) == 0
    rows = json.loads((folder / "rows.json").read_text())
    assert [row["line"] for row in rows] == ["wrong line", "false alarm"]
    assert "1 false alarms on 1 clean programs" in " ".join(capsys.readouterr().out.split())


def test_a_clean_program_is_silent(scoreboard, folder, capsys):
    assert scoreboard.main([str(folder), "2"]) == 0
    assert "nanlab: 0 exact, 0 wrong line, 0 silent; 0 false alarms" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("form", "family"),
    [("0/0 (underflow)", "0/0"), ("overflow; then 0*inf", "overflow"), ("log(<0)", "log(<0)"), ("log(0)", "log(0)"),
     ("nan_in (0/0 in preprocessing)", "nan_in"), ("pow(<0, fraction)", "pow(<0, fraction)"), (None, "")],
)  # fmt: skip
def test_forms_are_compared_without_their_notes(scoreboard, form, family):
    assert scoreboard.family(form) == family


def test_different_forms_stay_different(scoreboard):
    forms = ["0/0", "x/0", "0*inf", "inf-inf", "log(0)", "log(<0)", "sqrt(<0)", "overflow", "deriv_of_sqrt_at_0"]
    assert len({scoreboard.family(form) for form in forms}) == len(forms)
