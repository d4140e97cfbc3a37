"""The answer as a whole: its keys, its words, its caveats."""

import json
import subprocess
import sys

import pytest

import nanlab
from nanlab import suspects
from nanlab.doctor import diagnose
from nanlab.doctor.ask import questions

FAULT = "lr 0.5\nstep 0 loss 2.0\nstep 1 loss 900.0\nstep 2 loss 8.1e+09\nstep 3 loss inf\nstep 4 loss nan\n"
KEYS = [
    *("verdict", "suspects", "first_bad_step", "first_bad_kind", "first_bad_line", "step_is", "facts", "crash"),
    *("ranks", "fix", "ask_for", "lesson"),
]


def test_the_package_exports_it_without_importing_torch():
    code = "import sys, nanlab; nanlab.diagnose('step 1 loss nan\\n'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert nanlab.diagnose is diagnose


def test_the_json_has_the_agreed_keys(tmp_path):
    answer = diagnose(FAULT)
    written = json.loads(answer.to_json(tmp_path / "out.json"))
    assert list(written) == KEYS
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == written
    assert list(written["suspects"][0]) == ["name", "family", "band", "score", "evidence"]
    assert {"line", "says", "text"} == set(written["suspects"][0]["evidence"][0])
    assert (written["verdict"], written["first_bad_step"], written["first_bad_kind"]) == ("fault", 3, "inf")


def test_suspects_are_ranked_and_each_names_lines_of_the_log():
    found = diagnose(FAULT).suspects
    assert found[0].name == "lr_too_high"
    assert [s.score for s in found] == sorted((s.score for s in found), reverse=True)
    assert sum(s.score for s in found) <= 1
    assert all(s.lines and set(s.lines) <= set(range(1, 7)) for s in found)


def test_the_text_tells_fix_proof_and_lesson():
    text = str(diagnose(FAULT))
    row = suspects.get("lr_too_high")
    for part in (row.title, row.fix, row.wrong_fix, "Verify:", "Ask:", f"Lesson: {row.lesson}", "line 5, step 3"):
        assert part in text


def test_the_card_escapes_what_the_log_says():
    html = diagnose("step 1 loss 2.0 <script>alert(1)</script>\nstep 2 loss nan <b>x</b>\n")._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert '<th scope="col"' in html and "<caption" in html


def test_the_terminal_shows_a_table():
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=100).print(diagnose(FAULT))
    assert "Learning rate too high" in out.getvalue() and "because" in out.getvalue()


def test_markup_in_a_log_is_not_taken_for_style():
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=100).print(diagnose("[red]step 1[/red] loss 2.0\n[/bold] step 2 loss nan\n"))
    assert "[/bold]" in out.getvalue()


def test_at_most_two_things_are_asked_for_and_they_separate_the_leaders():
    answer = diagnose("fp16: true\nstep 0 loss 2.0\nstep 1 loss 2.1\nstep 2 loss nan\n")
    assert 1 <= len(answer.ask_for) <= 2
    assert any("float32" in text for text in answer.ask_for)


def test_every_faulty_suspect_has_a_test_of_its_own():
    faulty = {name for name, row in suspects.SUSPECTS.items() if row.kind == "fault"}
    asked = {name for q in questions().values() for weights in q.answers.values() for name in weights}
    assert faulty == asked


def test_a_log_that_starts_after_the_fault_is_asked_for_its_beginning():
    answer = diagnose("".join(f"epoch {i} loss nan\n" for i in range(90, 95)))
    assert "before the first NaN" in answer.ask_for[0]


def test_a_calm_death_without_a_hint_names_nobody_with_confidence():
    answer = diagnose("".join(f"step {i} loss {2 + i % 3 / 100}\n" for i in range(50)) + "step 50 loss nan\n")
    assert (answer.verdict, answer.suspects[0].band, answer.fix) == ("fault", "open", {})
    assert not answer.sure
    assert "several causes open" in str(answer) and "Fix:" not in str(answer)
    assert answer.lesson == "11_read_the_log"


def test_a_harmless_log_names_what_it_shows_and_asks_for_nothing():
    answer = diagnose("epoch 1 loss 0.9 val_auc nan\nepoch 2 loss 0.8 val_auc nan\n")
    assert (answer.verdict, answer.suspects[0].name, answer.ask_for) == ("harmless", "metric_only", ())
    assert (answer.first_bad_step, answer.first_bad_kind) == (1, "nan")


def test_a_healthy_log_names_nothing():
    answer = diagnose("epoch 1 loss 0.9\nepoch 2 loss 0.8\n")
    assert answer.to_dict() == dict.fromkeys(KEYS) | {"verdict": "no-nan", "suspects": [], "facts": [], "ask_for": []}


@pytest.mark.parametrize("text", ["", "\n\n", "   \n"])
def test_an_empty_log_is_said_to_be_empty(text):
    answer = diagnose(text.encode())
    assert answer.verdict == "unknown"
    assert "empty" in str(answer)


def test_reading_changes_nothing_and_two_readings_agree():
    assert diagnose(FAULT).to_dict() == diagnose(FAULT).to_dict()


def test_the_hunt_is_asked_for_by_the_script_that_the_log_names():
    trace = 'Traceback (most recent call last):\n  File "/data/fit_net.py", line 9, in <module>\n    main()\n'
    error = "RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.\n"
    assert any("nanlab hunt fit_net.py" in text for text in diagnose(trace + error).ask_for)
    assert any("nanlab hunt train.py" in text for text in diagnose(error).ask_for)


def test_a_validation_loss_that_is_nan_is_no_statistic():
    """Its running statistics, its data or an empty batch is at fault; no cause is named for sure."""
    epochs = [f"epoch {n} train_loss {1 / n:.3f} val_loss nan nan 640/640 logits" for n in range(1, 6)]
    answer = diagnose("\n".join(epochs))
    assert answer.verdict == "fault"
    assert answer.suspects[0].band != "named"


def test_the_best_loss_so_far_may_begin_at_infinity():
    log = "epoch 1 train_loss 0.91 val_loss 0.88\nValidation loss decreased (inf --> 0.88).\nepoch 2 train_loss 0.7\n"
    assert diagnose(log).verdict in {"no-nan", "harmless"}


def test_julia_names_the_width_of_its_nan():
    answer = diagnose("batch 10 loss = 0.0041f0\nbatch 20 loss = NaN32\nbatch 30 loss = NaN32\n")
    assert (answer.verdict, answer.first_bad_step, answer.first_bad_kind) == ("fault", 20, "nan")
