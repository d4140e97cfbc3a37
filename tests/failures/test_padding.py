import pytest
import torch

from nanlab import suspects
from nanlab.failures import padding
from nanlab.failures.anomaly import anomaly
from nanlab.failures.run import digits

cures = [fix for fix in padding.FIXES if fix.cures]
no_cures = [fix for fix in padding.FIXES if not fix.cures]


def test_the_run_is_calm_and_dies_in_one_step():
    history = padding.run()
    assert (history.first_bad_step, history.first_bad_where) == (padding.FIRST_BAD_STEP, padding.FIRST_BAD_WHERE)
    assert [digits(loss, 2) for loss in history.loss] == ["0.066", "0.2", "0.043", "0.07", "0.036", "nan"]


def test_only_the_padding_row_is_nan_in_the_forward_pass():
    rows, _ = padding.data()
    batch, row = padding.PADDING_ROW
    unit = padding.Encoder().scale_rows(rows[batch])
    assert unit.isnan().all(dim=1).nonzero().flatten().tolist() == [row]
    assert int(unit.isnan().sum()) == padding.FEATURES


@pytest.mark.parametrize("fix", cures, ids=lambda fix: fix.name)
def test_each_cure_works_alone_and_the_loss_falls(fix):
    history = padding.run(**fix.knobs, steps=96)
    assert history.finite
    assert history.loss[-1] < history.loss[0] / 20


@pytest.mark.parametrize("fix", cures, ids=lambda fix: fix.name)
def test_a_cured_run_agrees_with_the_same_run_in_float64(fix):
    ours = padding.run(**fix.knobs, steps=36).loss[-1]
    assert ours == pytest.approx(padding.run(**fix.knobs, steps=36, dtype=torch.float64).loss[-1], rel=1e-3)


def test_the_clamped_norm_gives_what_the_fused_normalize_gives():
    rows = padding.data(share=0.1)[0].view(-1, padding.FEATURES)
    ours = padding.Encoder(eps=1e-8).scale_rows(rows)
    torch.testing.assert_close(ours, torch.nn.functional.normalize(rows, dim=1, eps=1e-8), equal_nan=False)


@pytest.mark.parametrize("fix", no_cures, ids=lambda fix: fix.name)
def test_a_wrong_fix_fails_at_the_same_step(fix):
    assert padding.run(**fix.knobs).first_bad_step == padding.FIRST_BAD_STEP


@pytest.mark.parametrize("mend", ["nan_to_num", "where"])
def test_mending_the_output_keeps_the_loss_finite_and_the_gradient_nan(mend):
    history = padding.run(mend=mend)
    assert history.first_bad_where == "gradient"
    assert history.loss[-1] < 1


@pytest.mark.parametrize(("eps", "where"), [(1e-8, "activation"), (1e-7, "gradient"), (1e-4, None)])
def test_fp16_needs_an_epsilon_that_it_holds_and_whose_inverse_it_holds(eps, where):
    assert padding.run(dtype=torch.float16, eps=eps).first_bad_where == where


def test_without_padding_nothing_fails():
    assert padding.run(share=0.0, steps=24).finite


def test_dividing_by_the_mean_magnitude_fails_in_the_same_way():
    assert padding.run(divide_by="mean").first_bad_step == padding.FIRST_BAD_STEP
    assert padding.run(divide_by="mean", eps=1e-8, steps=24).finite


def test_the_input_scale_changes_nothing():
    assert [padding.run(scale=scale).first_bad_step for scale in (0.01, 1.0, 100.0)] == [5, 5, 5]


def test_each_fix_changes_one_knob_and_each_suspect_is_in_the_table():
    assert all(len(fix.knobs) == 1 for fix in padding.FIXES)
    assert [suspects.get(name).name for name in padding.SUSPECTS] == list(padding.SUSPECTS)


def test_anomaly_mode_blames_the_loss_when_the_forward_pass_was_already_nan():
    assert anomaly(padding.bad_step).error == "Function 'MseLossBackward0' returned nan values in its 0th output."


def test_anomaly_mode_names_the_division_when_the_output_was_mended():
    said = anomaly(lambda: padding.bad_step(mend="where"))
    assert said.error.startswith("Function 'DivBackward0' returned nan values")
    assert said.line == "unit = hidden / size"


def test_anomaly_mode_is_silent_about_a_cure():
    assert not anomaly(lambda: padding.bad_step(eps=1e-8)).error
