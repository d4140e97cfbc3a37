"""What the beginner's lessons say in plain words, lesson by lesson: each claim as a run."""

import math
import re

import pytest
import torch

from nanlab.formats import BF16, FP16
from nanlab.lessons import loss_explosion, padding_row, read_the_log, recurrent, small_boxes, two_markers
from nanlab.lessons.loss_explosion import ValleyLab
from nanlab.lessons.loss_explosion.pictures import START, explosion, valley, walk
from nanlab.lessons.recurrent.whisper import pass_on
from nanlab.lessons.recurrent_checkpoint import CASES, outcome
from nanlab.lessons.recurrent_checkpoint.pictures import six_losses
from nanlab.lessons.small_boxes import RulerLab
from nanlab.lessons.small_boxes.ruler import Ruler
from nanlab.lessons.softmax import hard_example
from nanlab.lessons.softmax.failure import probabilities


def test_01_a_program_that_met_a_bad_day_never_prints_a_number_again():
    for day in ("empty", "unrecorded"):
        losses = two_markers.run(day, stop=False, steps=12).loss
        assert all(math.isfinite(loss) for loss in losses[:3]) and not any(map(math.isfinite, losses[3:]))
        assert math.isnan(losses[-1])


def test_02_the_first_step_makes_the_loss_219_times_larger():
    first, second = loss_explosion.run().loss[:2]
    assert f"{second / first:.0f}" == "219"


def test_02_next_month_both_cures_fail_and_measuring_first_does_not():
    assert loss_explosion.run(lr=0.001, scale=100.0).first_bad_step == 3
    assert loss_explosion.run(scale=10.0).first_bad_step == 3  # numbers of 100, divided by ten
    months = [loss_explosion.run(scale=scale, measured=True, steps=41) for scale in (10.0, 100.0)]
    assert all(month.finite for month in months) and months[0].plain(every=10) == months[1].plain(every=10)
    assert months[0].loss[-1] < 0.05 * months[0].loss[0]


def test_02_the_walk_is_marked_where_it_starts_and_turns_from_good_to_bad_at_a_rate_of_1():
    chart = valley(1.2, 4)
    assert [note.text for note in chart.notes] == ["start"] and chart.series[1].arrows
    assert abs(walk(0.9, 8)[-1]) < abs(START) < abs(walk(1.1, 8)[-1]) and abs(walk(1.0, 3)[-1]) == abs(START)
    assert walk(0.5, 1)[-1] == 0  # "about five times longer would end there"
    lab = ValleyLab()
    for rate, word in ((0.1, "goes down"), (0.5, "exactly at the bottom"), (0.9, "lands lower"), (1.2, "explosion")):
        assert word in lab.sentence(lab.compute(rate, 4))
    assert "as high as it began" in lab.sentence(lab.compute(1.0, 3))


def test_02_the_axis_of_the_run_is_in_words_and_ends_with_the_box():
    texts = [getattr(shape, "text", "") for shape in explosion(loss_explosion.run()).picture().shapes]
    assert "1 million" in texts and "end of the box" in texts and "inf at step 3" in texts
    assert not any(re.search(r"10[⁰¹²³⁴⁵⁶⁷⁸⁹]|e\+", text) for text in texts)


def test_03_the_failure_goes_where_the_empty_row_goes():
    rows, targets = padding_row.failure.data()
    order = [0, 1, 5, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    model = padding_row.Encoder()
    assert padding_row.failure.train(model, rows[order], targets[order], 0.5, 12).first_bad_step == 2


def test_04_the_coarse_box_holds_many_numbers_exactly_and_its_marks_are_far_apart_at_65536():
    assert all(BF16.round(number) == number for number in (7, 100, 300, 59_904))
    assert 65_536 - BF16.down(65_536) == 256 and BF16.up(65_536) - 65_536 == 512
    assert FP16.up(40_000) - 40_000 == 32 and FP16.round(40_000 + 10) == 40_000


def test_04_the_ruler_shows_every_number_of_a_box_in_view_and_where_a_number_comes_to_lie():
    marks = Ruler(65_504, 40).marks(FP16)
    assert marks == [65_472, 65_504]
    assert Ruler(1.0, 1000).marks(FP16) is None  # too many to draw
    words = Ruler(65_520, 300).words()
    assert "holds inf" in words and "holds 65,536" in words and "holds 65,520" in words
    lab = RulerLab()
    assert "has no mark up there" in lab.sentence(lab.compute(70_000, 300))
    assert "small box makes it 0" in lab.sentence(lab.compute(1e-8, 4e-7))
    for button in lab.buttons:
        lab.set(**{"number": 65_504, "reach": 300} | dict(button.sets))
        assert Ruler(lab.values["number"], lab.values["reach"]).picture().shapes


@pytest.mark.parametrize("form, first", [("naive", "nan"), ("shifted", "inf")])
def test_05_two_programs_have_no_loss_for_the_dog_that_looks_like_a_wolf(form, first):
    learning = hard_example.run(form)
    assert [f"{loss}" for loss in learning.loss] == [first] and learning.right == [63]


def test_05_from_points_alone_the_loss_falls_and_the_dog_is_learnt_at_step_4():
    learning = hard_example.run("fused")
    assert sorted(learning.loss, reverse=True) == learning.loss
    assert learning.right == [63] * 4 + [64] * 2


def test_05_a_tiny_number_added_gives_a_smaller_loss_and_learns_nothing():
    patched, right = hard_example.run("shifted_eps", steps=12), hard_example.run("fused")
    assert set(patched.right) == {63} and patched.loss[0] < right.loss[0] / 3
    assert max(patched.loss) - min(patched.loss) < 1e-6


def test_05_the_hard_example_is_a_dog_by_its_label_and_scores_110_less_than_wolf():
    features, labels = hard_example.data()
    scores = features[0] @ (torch.eye(5, 4) * hard_example.SCALE)
    assert hard_example.KINDS[labels[0]] == "dog" and hard_example.KINDS[scores.argmax()] == "wolf"
    assert scores.max() - scores[labels[0]] == pytest.approx(110)


def test_05_ten_more_points_change_no_share_and_ten_points_weigh_22026():
    shares = [probabilities(torch.tensor(points), "naive") for points in ([3.0, 1.0, 2.0], [13.0, 11.0, 12.0])]
    torch.testing.assert_close(*shares, equal_nan=False)
    assert f"{2.71828**10:,.0f}" == "22,026"


def test_06_the_number_passes_34_and_37_zeros_and_the_correction_was_two_million_times_too_large():
    assert f"{torch.finfo(torch.float32).max:.0f}".startswith("34") and torch.finfo(torch.float32).max > 34e37
    assert math.isinf(pass_on(1.1, 1000)[931]) and math.isfinite(pass_on(1.1, 1000)[930])
    norms = recurrent.run(lr=0.00001).gradient_norm
    assert 1.5e6 < norms[5] / norms[0] < 2.5e6


def test_06_on_a_list_of_500_no_leap_is_seen():
    run = recurrent.run(length=500)
    *calm, last = run.gradient_norm
    assert calm == sorted(calm, reverse=True) and max(calm) < 20 and math.isnan(last)


def test_06_with_the_limiter_long_lists_stay_above_400_million_and_with_the_cure_they_are_learnt():
    limited, held = recurrent.run(clip=20.0, steps=24), recurrent.run(hold=True, steps=24)
    assert min(limited.loss[5::6]) > 4e8 and limited.loss[10] < 0.02
    assert held.loss[5] > 10 and held.loss[23] < 0.02 and held.loss[22] < 0.01


def test_checkpoint_a_lower_rate_cures_run_b_alone():
    learns = [letter for letter, case in CASES.items() if outcome(case.run(lr_times=0.01)) == "learns"]
    assert learns == ["b"]
    assert len(six_losses().charts) == 6


def test_11_the_first_report_falls_once_and_then_climbs():
    loss = loss_explosion.run(lr=0.02).loss
    assert loss[0] > loss[1] < loss[2] < loss[3] and math.isinf(loss[4])


def test_11_three_programs_print_one_report():
    assert len(set(read_the_log.reports().values())) == 1


def test_04_the_helper_leaves_the_program_as_it_was():
    helped = small_boxes.with_fix("grad_scaler", steps=20)
    assert helped.skipped == 20 and not helped.moved
