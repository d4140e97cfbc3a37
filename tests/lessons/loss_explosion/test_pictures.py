import pytest

from nanlab.lessons.loss_explosion import pictures


def heights(chart):
    return chart.series[1].y


def test_a_small_rate_walks_down_without_crossing():
    chart = pictures.valley(learning_rate=0.1, steps=8)
    assert all(later < earlier for earlier, later in zip(heights(chart), heights(chart)[1:], strict=False))
    assert "stays on the left slope" in chart.alt


def test_a_rate_above_one_climbs_at_every_step():
    chart = pictures.valley(learning_rate=1.2, steps=4)
    assert all(later > earlier for earlier, later in zip(heights(chart), heights(chart)[1:], strict=False))
    assert "crosses the valley" in chart.alt


@pytest.mark.parametrize("rate", [0.1, 1.2])
def test_a_step_is_the_slope_times_the_rate(rate):
    walk = pictures.valley(learning_rate=rate, steps=1).series[1].x
    assert walk[1] == pytest.approx(walk[0] - rate * 2 * walk[0])


def test_without_steps_one_point_stands_on_the_slope():
    assert heights(pictures.valley()) == [4.0]
