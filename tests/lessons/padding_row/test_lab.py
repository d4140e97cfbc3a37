import pytest

from nanlab.lessons import padding_row
from nanlab.lessons.padding_row import PaddingLab

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
