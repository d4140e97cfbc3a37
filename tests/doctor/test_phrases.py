"""Every phrase stands with a line that it must match and one that looks alike and that it must not."""

import pytest

from nanlab.doctor.vocabulary import operations, table
from nanlab.suspects import SUSPECTS

ROWS = table("phrase")
IDS = [f"{i} {row.says[:40]}" for i, row in enumerate(ROWS)]


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_phrase_matches_its_line_and_not_the_one_that_looks_alike(row):
    assert row.hit and row.miss
    assert row.fits(row.hit.lower())
    assert not row.fits(row.miss.lower())


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_phrase_weighs_for_suspects_that_exist_and_no_more_than_a_report_of_nanlab(row):
    assert set(row.weights) <= set(SUSPECTS)
    assert all(-3 <= weight <= 3 for weight in row.weights.values())


def test_operations_and_code_weigh_for_suspects_that_exist():
    rows = [r.weights for section in ("code", "form") for r in table(section)] + list(operations().values())
    assert {name for weights in rows for name in weights} <= set(SUSPECTS) | {"unknown"}


@pytest.mark.parametrize(
    "line", ["frac_reward_zero_std: 0.0", "{'loss': 0.1, 'kl': 0.0004, 'reward': 0.4}", "num_workers = 0", "eps: 1e-08"]
)
def test_names_and_settings_of_a_healthy_run_speak_for_nobody(line):
    assert not [row.says for row in ROWS if row.weights and row.fits(line.lower())]
