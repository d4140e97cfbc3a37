"""The box for a log answers with the doctor's card, and says so when there is nothing to read."""

import pytest

from nanlab.lessons.read_the_log import LogLab

VIEW = "application/vnd.jupyter.widget-view+json"
LOG = "step 1 loss 2.31\nstep 2 loss 2.30\nstep 3 loss nan\n"


@pytest.fixture
def lab():
    made = LogLab()
    _ = made.widget
    return made


def test_the_button_diagnoses_what_was_pasted(lab):
    lab.area.value = LOG
    lab.button.click()
    assert "line 3" in lab.answer.value
    assert 'role="status"' in lab.answer.value


def test_an_empty_box_is_answered_and_not_diagnosed(lab):
    lab.area.value = " \n"
    lab.button.click()
    assert "nothing to read yet" in lab.answer.value


@pytest.mark.parametrize("text", ["\x00\x01", "<script>alert(1)</script> loss nan", "no numbers here", "é" * 10_000])
def test_any_text_is_answered_and_none_of_it_runs(lab, text):
    lab.area.value = text
    lab.button.click()
    assert "<script" not in lab.answer.value
    assert "Reading the log" not in lab.answer.value


def test_a_log_can_stand_in_the_box_from_the_start():
    lab = LogLab(LOG)
    _ = lab.widget
    assert lab.area.value == LOG


def test_what_is_stored_is_one_fixed_line(lab):
    before = lab._repr_mimebundle_()
    lab.area.value = LOG
    lab.button.click()
    after = lab._repr_mimebundle_()
    assert VIEW in before
    assert {k: v for k, v in before.items() if k != VIEW} == {k: v for k, v in after.items() if k != VIEW}
