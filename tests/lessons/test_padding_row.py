"""Lesson 03: the padding row, its fixes, what anomaly mode says of it, the lab and the pictures."""

import pytest
import torch

from nanlab import suspects
from nanlab.course.history import digits
from nanlab.lessons import padding_row
from nanlab.lessons.padding_row import PaddingLab, failure, pictures
from nanlab.lessons.padding_row.anomaly import GRAPHS, anomaly, count_checks, edges

cures = [fix for fix in padding_row.FIXES if fix.cures]
no_cures = [fix for fix in padding_row.FIXES if not fix.cures]


def test_the_run_is_calm_and_dies_in_one_step():
    history = padding_row.run()
    assert history.first_bad_step == failure.FIRST_BAD_STEP
    assert history.first_bad_where == failure.FIRST_BAD_WHERE
    assert [digits(loss, 2) for loss in history.loss] == ["0.066", "0.2", "0.043", "0.07", "0.036", "nan"]


def test_only_the_padding_row_is_nan_in_the_forward_pass():
    rows, _ = padding_row.data()
    batch, row = padding_row.PADDING_ROW
    unit = padding_row.Encoder().scale_rows(rows[batch])
    assert unit.isnan().all(dim=1).nonzero().flatten().tolist() == [row]
    assert int(unit.isnan().sum()) == failure.FEATURES


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
    rows = padding_row.data(share=0.1)[0].view(-1, failure.FEATURES)
    ours = padding_row.Encoder(eps=1e-8).scale_rows(rows)
    torch.testing.assert_close(ours, torch.nn.functional.normalize(rows, dim=1, eps=1e-8), equal_nan=False)


@pytest.mark.parametrize("fix", no_cures, ids=lambda fix: fix.name)
def test_a_wrong_fix_fails_at_the_same_step(fix):
    assert padding_row.run(**fix.knobs).first_bad_step == failure.FIRST_BAD_STEP


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
    assert padding_row.run(divide_by="mean").first_bad_step == failure.FIRST_BAD_STEP
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


def padding_row_step():
    rows = torch.tensor([[1.0, 2.0], [0.0, 0.0]], requires_grad=True)
    unit = rows / rows.norm(dim=1, keepdim=True)  # the line that is at fault
    unit.sum().backward()


def test_it_gives_the_stable_part_of_what_anomaly_mode_says():
    said = anomaly(padding_row_step)
    assert said.error == "Function 'DivBackward0' returned nan values in its 1th output."


def test_it_gives_the_line_of_the_forward_pass():
    assert anomaly(padding_row_step).line.startswith("unit = rows / rows.norm")


def test_it_says_nothing_about_a_clean_step():
    said = anomaly(lambda: torch.ones(2, requires_grad=True).sum().backward())
    assert (said.error, said.line, str(said)) == ("", "", "(it says nothing)")


def test_another_error_passes_through():
    with pytest.raises(RuntimeError, match="does not require grad"):
        anomaly(lambda: torch.ones(2).sum().backward())


def test_anomaly_mode_is_off_again_afterwards():
    anomaly(padding_row_step)
    assert not torch.is_anomaly_enabled()


def test_anomaly_mode_misses_an_infinite_gradient():
    assert not anomaly(lambda: torch.zeros(1, requires_grad=True).log().backward()).error


@pytest.mark.parametrize("name", GRAPHS)
def test_it_checks_once_for_each_edge_of_the_backward_graph(name):
    torch.manual_seed(0)
    loss = GRAPHS[name]()
    assert count_checks(loss) == edges(loss())


# no control takes the padding rows out of a batch; a share of 0 does
with_controls = [fix for fix in padding_row.FIXES if fix.name != "leave_padding_out"]


def test_the_lab_opens_on_the_standard_failure():
    lab = PaddingLab()
    assert lab.settings() == "share=0.01, eps=0, float32"
    assert lab.summary(lab.result) == "first non-finite step 5, in the scaled row"
    assert "0 divided by 0" in lab.sentence(lab.result)


@pytest.mark.parametrize("fix", with_controls, ids=lambda fix: fix.name)
def test_each_fix_button_says_whether_it_cures(fix):
    lab = PaddingLab(**fix.knobs)
    assert lab.result.fix == fix
    assert lab.result.history.finite == fix.cures
    assert ("This fix cures it" in lab.sentence(lab.result)) == fix.cures


def test_in_fp16_an_epsilon_of_1e_8_is_zero_and_the_lab_says_so():
    lab = PaddingLab(dtype="float16", eps=1e-8)
    assert "1e-08 is 0 in it" in lab.sentence(lab.result)
    assert lab.table(lab.result)[1][0][2] == "0"


def test_an_epsilon_whose_inverse_overflows_fails_in_the_gradient():
    lab = PaddingLab(dtype="float16", eps=1e-7)
    assert lab.summary(lab.result) == "first non-finite step 5, in the gradient"
    assert "backward divides by the epsilon" in lab.sentence(lab.result)


def test_without_padding_rows_there_is_no_row_to_show():
    lab = PaddingLab(share=0.0)
    assert lab.result.history.finite
    assert lab.table(lab.result)[1][0][0] == "there is none"


def test_the_stored_text_names_changed_controls_only():
    assert PaddingLab(lr=0.1, divide_by="mean").settings() == "share=0.01, eps=0, mean, float32, lr=0.1"


def test_the_empty_basket_has_no_share_and_spoils_every_average():
    words = pictures.shares().words().splitlines()
    assert words[4].split() == ["basket", "3", "nan", "nan", "nan"]
    assert words[6].split() == ["average", "nan", "nan", "nan"]


def test_a_least_divisor_makes_the_empty_basket_a_row_of_zeros():
    words = pictures.shares(at_least=1e-8).words()
    assert "nan" not in words
    assert "basket 3 0 %  0 %  0 %" in words


def test_leaving_the_empty_basket_out_changes_the_average_and_no_other_row():
    kept = pictures.shares(at_least=1e-8).words().splitlines()
    left_out = pictures.shares(leave_out_empty=True).words().splitlines()
    assert [line for line in kept if "basket 3" not in line and "average" not in line] == left_out[:-1]
    assert kept[-1] != left_out[-1]


def test_every_line_of_the_padded_table_has_six_places():
    assert {len(row) for row in pictures.sentences().rows} == {6}
    assert [cell.text for cell in pictures.sentences().rows[2]] == ["0"] * 6
