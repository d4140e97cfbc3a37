"""Labelled logs: `rules` were in sight when rules were written, `thresholds` set the bands and nothing else.

The floors are below what was measured (see benchmarks/doctor.py): they catch a fall, they claim nothing.
"""

import json
from functools import cache
from pathlib import Path

import pytest

from nanlab.doctor import diagnose

ROOT = Path(__file__).with_name("logs")


@cache
def answered(part: str) -> list[tuple[dict, dict]]:
    labels = [json.loads(line) for line in (ROOT / part / "labels.jsonl").read_text("utf-8").splitlines() if line]
    return [(label, diagnose(ROOT / part / f"{label['id']}.log").to_dict()) for label in labels]


def share(found: list[bool]) -> float:
    return sum(found) / len(found)


@pytest.mark.parametrize(
    ("part", "verdict", "step", "cause"), [("rules", 0.95, 0.93, 0.7), ("thresholds", 0.88, 0.78, 0.5)]
)
def test_verdict_step_and_cause_stay_above_their_floor(part, verdict, step, cause):
    cases = answered(part)
    assert share([label["verdict"] == got["verdict"] for label, got in cases]) >= verdict
    stepped = [(label, got) for label, got in cases if label["first_bad_step"] is not None]
    assert share([label["first_bad_step"] == got["first_bad_step"] for label, got in stepped]) >= step
    caused = [(c, g) for c, g in cases if c["verdict"] == "fault" and c["primary"] != "unknown"]
    assert share([label["primary"] in [s["name"] for s in got["suspects"][:2]] for label, got in caused]) >= cause


@pytest.mark.parametrize("part", ["rules", "thresholds"])
def test_a_wrong_cause_is_hardly_ever_named(part):
    faults = [(label, got) for label, got in answered(part) if label["verdict"] == got["verdict"] == "fault"]
    wrong = [g["suspects"][0]["band"] == "named" and g["suspects"][0]["name"] != c["primary"] for c, g in faults]
    assert share(wrong) <= 0.05
