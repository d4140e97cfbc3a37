"""The ring of the last steps, and the word it has for them."""

import math

from hypothesis import given
from hypothesis import strategies as st

from nanlab.detect.state.trajectory import LENGTH, Trajectory


def run(losses, norms) -> Trajectory:
    made = Trajectory()
    for step, (loss, norm) in enumerate(zip(losses, norms, strict=True)):
        made.add(step, loss, norm, 0.1, math.nan)
    return made


def test_only_the_last_64_steps_are_kept():
    made = run([1.0] * 200, [1.0] * 200)
    assert len(made) == LENGTH == 64
    assert made.points[0].step == 136


def test_growth_is_climbing_and_the_evidence_says_of_what():
    made = run([1.0] * 20, [2.0**i for i in range(20)])
    assert made.verdict == "climbing"
    assert made.evidence.startswith("gradient norm rose from ")
    assert run([3.0**i for i in range(9)], [math.nan] * 9).evidence.startswith("loss rose")


def test_noise_and_a_falling_loss_are_flat():
    assert run([1.0, 1.4, 0.8, 1.2, 0.9, 1.1], [2.0, 5.0, 3.0, 2.5, 4.0, 2.0]).verdict == "flat"
    assert run([10.0 / (i + 1) for i in range(40)], [1.0] * 40).verdict == "flat"


def test_a_short_run_gets_no_verdict():
    assert run([1.0, 2.0, 4.0], [1.0, 1.5, 1.2]).verdict == "short"
    assert Trajectory().verdict == "short"


def test_a_steady_rise_by_less_than_ten_is_climbing():
    assert run([1.0] * 12, [1.0 + 0.6 * i for i in range(12)]).verdict == "climbing"


numbers = st.floats(width=32)


@given(st.lists(st.tuples(numbers, numbers), max_size=80))
def test_it_survives_json_and_never_stumbles_over_a_value(rows):
    made = run([a for a, _ in rows], [b for _, b in rows])
    again = Trajectory.from_json(made.to_json())
    assert made.judge() == again.judge()
    assert str(made) == str(again)
    assert all(a == b or (a != a and b != b) for p, q in zip(made.points, again.points, strict=True)
               for a, b in zip(p, q, strict=True))  # fmt: skip


def test_columns_without_a_value_are_left_out_of_the_table():
    assert "scale" not in run([1.0] * 5, [1.0] * 5).table()
    assert run([1.0] * 5, [1.0] * 5).table().splitlines()[1].split() == ["0", "1", "1", "0.1"]
