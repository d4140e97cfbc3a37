import pytest
import torch

from nanlab import suspects
from nanlab.course.history import digits
from nanlab.lessons import padding_row
from nanlab.lessons.padding_row.anomaly import anomaly

cures = [fix for fix in padding_row.FIXES if fix.cures]
no_cures = [fix for fix in padding_row.FIXES if not fix.cures]


def test_the_run_is_calm_and_dies_in_one_step():
    history = padding_row.run()
    assert history.first_bad_step == padding_row.FIRST_BAD_STEP
    assert history.first_bad_where == padding_row.FIRST_BAD_WHERE
    assert [digits(loss, 2) for loss in history.loss] == ["0.066", "0.2", "0.043", "0.07", "0.036", "nan"]


def test_only_the_padding_row_is_nan_in_the_forward_pass():
    rows, _ = padding_row.data()
    batch, row = padding_row.PADDING_ROW
    unit = padding_row.Encoder().scale_rows(rows[batch])
    assert unit.isnan().all(dim=1).nonzero().flatten().tolist() == [row]
    assert int(unit.isnan().sum()) == padding_row.FEATURES


@pytest.mark.parametrize("fix", cures, ids=lambda fix: fix.name)
def test_each_cure_works_alone_and_the_loss_falls(fix):
    history = padding_row.run(**fix.knobs, steps=96)
    assert history.finite
    assert history.loss[-1] < history.loss[0] / 20


@pytest.mark.parametrize("fix", cures, ids=lambda fix: fix.name)
def test_a_cured_run_agrees_with_the_same_run_in_float64(fix):
    ours = padding_row.run(**fix.knobs, steps=36).loss[-1]
    assert ours == pytest.approx(padding_row.run(**fix.knobs, steps=36, dtype=torch.float64).loss[-1], rel=1e-3)


def test_the_clamped_norm_gives_what_the_fused_normalize_gives():
    rows = padding_row.data(share=0.1)[0].view(-1, padding_row.FEATURES)
    ours = padding_row.Encoder(eps=1e-8).scale_rows(rows)
    torch.testing.assert_close(ours, torch.nn.functional.normalize(rows, dim=1, eps=1e-8), equal_nan=False)


@pytest.mark.parametrize("fix", no_cures, ids=lambda fix: fix.name)
def test_a_wrong_fix_fails_at_the_same_step(fix):
    assert padding_row.run(**fix.knobs).first_bad_step == padding_row.FIRST_BAD_STEP


@pytest.mark.parametrize("mend", ["nan_to_num", "where"])
def test_mending_the_output_keeps_the_loss_finite_and_the_gradient_nan(mend):
    history = padding_row.run(mend=mend)
    assert history.first_bad_where == "gradient"
    assert history.loss[-1] < 1


@pytest.mark.parametrize(("eps", "where"), [(1e-8, "activation"), (1e-7, "gradient"), (1e-4, None)])
def test_fp16_needs_an_epsilon_that_it_holds_and_whose_inverse_it_holds(eps, where):
    assert padding_row.run(dtype=torch.float16, eps=eps).first_bad_where == where


def test_without_padding_nothing_fails():
    assert padding_row.run(share=0.0, steps=24).finite


def test_dividing_by_the_mean_magnitude_fails_in_the_same_way():
    assert padding_row.run(divide_by="mean").first_bad_step == padding_row.FIRST_BAD_STEP
    assert padding_row.run(divide_by="mean", eps=1e-8, steps=24).finite


def test_the_input_scale_changes_nothing():
    assert [padding_row.run(scale=scale).first_bad_step for scale in (0.01, 1.0, 100.0)] == [5, 5, 5]


def test_each_fix_changes_one_knob_and_each_suspect_is_in_the_table():
    assert all(len(fix.knobs) == 1 for fix in padding_row.FIXES)
    assert [suspects.get(name).name for name in padding_row.SUSPECTS] == list(padding_row.SUSPECTS)


def test_anomaly_mode_blames_the_loss_when_the_forward_pass_was_already_nan():
    assert anomaly(padding_row.bad_step).error == "Function 'MseLossBackward0' returned nan values in its 0th output."


def test_anomaly_mode_names_the_division_when_the_output_was_mended():
    said = anomaly(lambda: padding_row.bad_step(mend="where"))
    assert said.error.startswith("Function 'DivBackward0' returned nan values")
    assert said.line == "unit = hidden / size"


def test_anomaly_mode_is_silent_about_a_cure():
    assert not anomaly(lambda: padding_row.bad_step(eps=1e-8)).error
