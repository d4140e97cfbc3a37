"""The pace of a hunted script is decided by its own steps."""

from nanlab.detect.scripts import pace
from nanlab.detect.scripts.pace import Pace


def walk(hunt: float, plain: float, steps: int) -> Pace:
    made = Pace()
    mode = made.mode
    for _ in range(steps):
        mode = made.took(hunt if mode == "hunt" else plain)
    return made


def test_a_short_run_is_hunted_and_nothing_is_measured():
    made = walk(0.01, 0.001, int(pace.FREE / 0.01) - 1)
    assert (made.mode, made.decided, made.ratio) == ("hunt", False, None)


def test_a_hunt_that_costs_too_much_gives_way_and_a_cheap_one_stays():
    assert walk(0.5, 0.1, 40).mode == "plain"
    assert walk(0.5, 0.4, 40).mode == "hunt"
    assert round(walk(0.5, 0.1, 40).ratio, 3) == 5.0


def test_one_slow_step_decides_nothing():
    made = Pace()
    for number in range(40):
        made.took(9.0 if number == 5 else 0.5)
    assert made.decided
    assert made.mode == "hunt"
