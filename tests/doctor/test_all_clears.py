"""What must not be cleared, and what must not be called a fault."""

import pytest

from nanlab.cli import main
from nanlab.doctor import diagnose

FAULTS = {
    "JSON null": '{"step":1,"loss":2.1}\n{"step":2,"loss":2.0}\n{"step":3,"loss":null}\n{"step":4,"loss":null}\n',
    "empty cells": "step,loss\n1,2.0\n2,1.9\n3,\n4,\n",
    "None": "step 1 loss 2.0\nstep 2 loss 1.9\nstep 3 loss None\nstep 4 loss None\n",
    "Chinese": "step 1 损失 0.5\nstep 2 损失 0.4\nstep 3 损失 nan\n",
    "a lone mae": "step 1 mae 3.1\nstep 2 mae 2.9\nstep 3 mae nan\nstep 4 mae nan\n",
    "a lone dice": "step 1 dice 0.1\nstep 2 dice 0.2\nstep 3 dice nan\nstep 4 dice nan\n",
    "a lone cer": "step 1 cer 0.9\nstep 2 cer 0.8\nstep 3 cer nan\nstep 4 cer nan\n",
    "a printed tensor": "step 1 loss: tensor(2.1)\nstep 2 loss: tensor(1.9)\nstep 3 loss: tensor(nan, device=0)\n",
}


@pytest.mark.parametrize("text", FAULTS.values(), ids=FAULTS)
def test_a_loss_that_is_no_number_any_more_is_a_fault(text):
    answer = diagnose(text)
    assert (answer.verdict, answer.first_bad_step, answer.first_bad_kind) == ("fault", 3, "nan")


def test_a_check_that_answers_true_is_a_fault():
    assert diagnose("template_embedder.linear: any nan = True\n").verdict == "fault"
    assert diagnose("template_embedder.linear: any nan = False\nstep 1 loss 0.3\n").verdict == "no-nan"


def test_the_empty_cells_of_a_logger_that_writes_train_and_validation_in_turn_are_no_fault():
    rows = "".join(f"{i},{i},{'' if i % 2 else 0.9 - i / 100},{0.8 if i % 2 else ''}\n" for i in range(8))
    assert diagnose("epoch,step,train_loss,val_loss\n" + rows).verdict == "no-nan"


def test_a_null_in_a_configuration_is_no_fault():
    text = '{"step": 1, "loss": 0.5, "aux_loss": null}\n{"step": 2, "loss": 0.4, "aux_loss": null}\n'
    assert diagnose("loss: None\nmax_loss: null\n" + text.replace(', "aux_loss": null', "")).verdict == "no-nan"


def test_the_rows_of_a_data_frame_are_no_fault():
    assert diagnose("   age  income\n0   31   1200\n1   44    NaN\n2   29    900\n").verdict != "fault"


@pytest.mark.parametrize(
    "last", ["torch.OutOfMemoryError: CUDA out of memory.", "RuntimeError: CUDA error: device-side assert"]
)
def test_a_death_of_another_kind_is_said_and_is_no_all_clear(last, tmp_path):
    path = tmp_path / "a.log"
    path.write_text(f"step 1 loss 0.5\nstep 2 loss 0.4\n{last}\n", "utf-8")
    answer = diagnose(path)
    assert (answer.verdict, answer.fine) == ("no-nan", False)
    assert "line 3" in str(answer)
    assert main(["diagnose", str(path)]) == 1


def test_a_class_called_stop_sign_stopped_nothing():
    text = "AP@0.5IOU/car: 0.48\nAP@0.5IOU/stop sign: nan\nLosses/Loss/localization_loss: 0.12\n"
    assert diagnose(text).verdict == "harmless"
