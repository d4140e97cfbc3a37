"""``nanlab diagnose`` from the command line: what it prints, writes and returns."""

import io
import json
import sys
from pathlib import Path

import pytest

from nanlab.cli import main

FAULT = "step 0 loss 2.0\nstep 1 loss nan\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text(FAULT, "utf-8")
    return path


def test_a_fault_returns_one_and_names_the_step(log, capsys):
    assert main(["diagnose", str(log)]) == 1
    assert "step 1" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["step 0 loss 2.0\n", "step 0 loss 2.0 auc nan\n"])
def test_nothing_wrong_returns_zero(tmp_path, text):
    path = tmp_path / "fine.log"
    path.write_text(text, "utf-8")
    assert main(["diagnose", str(path)]) == 0


@pytest.mark.parametrize("arguments", [["diagnose", "-"], ["diagnose"]])
def test_standard_input_is_read(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FAULT.encode())))
    assert main(arguments) == 1
    assert "step 1" in capsys.readouterr().out


def test_json_goes_to_a_file_beside_the_report(log, tmp_path, capsys):
    out = tmp_path / "out.json"
    assert main(["diagnose", str(log), "--json", str(out)]) == 1
    assert json.loads(out.read_text("utf-8"))["first_bad_step"] == 1
    assert "Fault" in capsys.readouterr().out


def test_json_to_standard_output_is_json_alone(log, capsys):
    assert main(["diagnose", str(log), "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "fault"


def test_a_missing_file_is_said_and_returns_two(tmp_path, capsys):
    assert main(["diagnose", str(tmp_path / "gone.log")]) == 2
    assert "gone.log: there is no such file" in capsys.readouterr().err


def test_a_directory_is_said_and_returns_two(tmp_path, capsys):
    assert main(["diagnose", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


def test_a_file_without_permission_is_said_and_returns_two(log, capsys, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert main(["diagnose", str(log)]) == 2
    assert "no permission to read it" in capsys.readouterr().err


def test_binary_data_is_said_and_returns_two(tmp_path, capsys):
    path = tmp_path / "model.bin"
    path.write_bytes(bytes(range(32)) * 200)
    assert main(["diagnose", str(path)]) == 2
    assert "binary data" in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_said(log, tmp_path, capsys):
    assert main(["diagnose", str(log), "--json", str(tmp_path / "no" / "out.json")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_an_option_that_does_not_exist_returns_two(log):
    assert main(["diagnose", str(log), "--nope"]) == 2


def test_the_help_says_what_the_statuses_mean(capsys):
    assert main(["diagnose", "--help"]) == 0
    assert "Exit status" in capsys.readouterr().out


def test_a_traceback_never_reaches_the_user(tmp_path, capsys):
    path = tmp_path / "odd.log"
    path.write_bytes(b"\xff\xfe\xfa\x80" * 50 + b"\nloss: nan\n")
    assert main(["diagnose", str(path)]) in {0, 1, 2}
    assert "Traceback" not in capsys.readouterr().err
