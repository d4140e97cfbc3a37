"""The measure is right on answers that are known, and the shipped cases are whole."""

import json
from pathlib import Path

import pytest

from nanlab.doctor import measure
from nanlab.suspects import SUSPECTS


@pytest.fixture(scope="module")
def shipped():
    return measure.cases()


def test_the_shipped_cases_are_about_two_dozen_of_many_kinds(shipped):
    assert 20 <= len(shipped) <= 30
    assert len({case.framework for case in shipped}) >= 15
    assert {case.primary for case in shipped} <= set(SUSPECTS) | {"unknown", "not_nan"}
    assert len({case.primary for case in shipped}) >= 14


def test_every_case_has_a_label_and_evidence_within_the_log(shipped):
    folder = Path(measure.__file__).with_name("cases")
    labels = [json.loads(line) for line in (folder / "labels.jsonl").read_text("utf-8").splitlines()]
    assert {label["id"] for label in labels} == {path.stem for path in folder.glob("*.log")}
    for case, label in zip(shipped, labels, strict=True):
        assert all(1 <= line <= case.text.count("\n") for line in label["evidence"])
        assert case.note


def test_the_doctor_is_mostly_right_on_them_and_not_always(shipped):
    """The lesson measures it honestly: some cases cannot be told from their log."""
    assert measure.right_verdicts(shipped) >= 0.8
    assert measure.top(shipped, 1) >= 0.7
    assert measure.top(shipped, 1) <= measure.top(shipped, 2) <= 1
    assert measure.misses(shipped)
    assert measure.right_steps(shipped) >= 0.9


def test_nobody_is_named_with_confidence_where_the_cause_is_unknown(shipped):
    assert not any(case.answer.sure for case in shipped if case.primary == "unknown")


def test_the_bins_hold_every_answer_that_names_a_suspect(shipped):
    bins = measure.calibration(shipped)
    assert sum(part.count for part in bins) == sum(bool(case.answer.suspects) for case in shipped)
    assert all(part.low <= part.score <= part.high and 0 <= part.right <= 1 for part in bins)


def test_the_confusion_table_counts_every_case_once(shipped):
    table = measure.confusion(shipped)
    assert sum(table.values()) == len(shipped)
    assert table[("not_nan", "no-nan")] == 2


def test_a_folder_of_one_s_own_can_be_measured(tmp_path: Path):
    (tmp_path / "a.log").write_text("fp16: true\nstep 0 loss 2.0\nstep 1 loss nan\n", "utf-8")
    label = {
        "id": "a",
        "framework": "x",
        "primary": "fp16_overflow_or_no_scaler",
        "first_bad_step": 1,
        "first_bad_kind": "nan",
    }
    (tmp_path / "labels.jsonl").write_text(json.dumps(label) + "\n", "utf-8")
    (case,) = measure.cases(tmp_path)
    assert (measure.top([case], 1), measure.right_steps([case]), measure.right_verdicts([case])) == (1, 1, 1)
    assert measure.misses([case]) == []


def test_no_cases_give_no_figures_and_no_error():
    assert (measure.top([], 1), measure.right_steps([]), measure.calibration([])) == (0, 0, [])
