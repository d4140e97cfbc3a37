"""The recurrent lab and the whisper lab say what the backward pass and the circle do."""

import pytest

from nanlab.lessons.recurrent import RecurrentLab, WhisperLab


def text(lab):
    return lab._repr_mimebundle_()[0]["text/plain"]


def said(lab):
    return lab.sentence(lab.result)


def test_the_standard_pass_is_told_as_the_lessons_store_it():
    assert text(RecurrentLab()) == (
        "radius=1.1, length=100, linear, numbers, lr=0.001, float32 · "
        "gradient 627 at the last time step, 7.85e+06 at the first · first non-finite: none"
    )


def test_a_linear_recurrence_is_said_to_follow_the_law():
    assert "99 time steps back the gradient is 12,500 times" in said(RecurrentLab())
    assert "as the law says" in said(RecurrentLab())


def test_tanh_on_numbers_is_said_to_depart_from_it():
    assert "the law, which knows no activation, says 12,500 times" in said(RecurrentLab(activation="tanh"))


def test_a_forward_overflow_is_told_from_one_on_the_way_back():
    forward = RecurrentLab(radius=2.0, length=200)
    back = RecurrentLab(radius=1.5, length=300, activation="tanh", sequence="silence")
    assert "on the way forward" in said(forward) and "the state, at time step" in said(forward)
    assert "on the way back" in said(back) and "States and loss are finite" in said(back)


def test_clipping_shortens_the_step_and_leaves_the_slope():
    lab = RecurrentLab()
    _ = lab.widget
    lab._pressed(next(button for button in lab.buttons if button.label == "Clip the norm at 1"))
    assert "leaves the slope of the curve" in said(lab)
    assert dict(lab.table(lab.result)[1])["length of the step (learning rate × norm)"] == "0.001"
    assert "after clipping" in lab.chart(lab.result).words()


def test_clipping_a_norm_that_overflows_leaves_nothing():
    lab = RecurrentLab(radius=1.5, length=150, activation="tanh", sequence="silence", clip=1.0)
    assert "The norm itself is inf and clipping leaves 0" in said(lab)


def test_a_radius_of_1_neither_grows_nor_fades():
    assert "nothing grows, nothing fades" in said(RecurrentLab(radius=1.0))


def test_a_half_precision_pass_stores_no_digit_of_its_gradient():
    assert text(RecurrentLab(dtype="bfloat16", length=50)).endswith(
        "gradient finite at the last time step, finite at the first · first non-finite: none"
    )


@pytest.mark.parametrize(
    ("dtype", "limit"), [("float16", "fp16 max 65,504"), ("float32", "fp32 max"), ("bfloat16", "bf16 max")]
)
def test_the_limit_of_the_format_is_in_the_picture_of_a_run_that_passes_it(dtype, limit):
    lab = RecurrentLab(dtype=dtype, radius=2.0, length=150, activation="tanh", sequence="silence")
    assert limit in lab.chart(lab.result).svg()


def test_every_control_changes_what_is_said_stored_or_drawn():
    def shown(lab):
        return said(lab), lab.table(lab.result)

    others = {"radius": 1.2, "length": 50, "activation": "tanh", "sequence": "silence", "clip": 1.0, "lr": 0.1}
    for name, value in others.items():
        assert shown(RecurrentLab(**{name: value})) != shown(RecurrentLab()), name


def test_the_whisper_lab_counts_the_people():
    assert text(WhisperLab(people=1000)) == (
        "times=1.1, people=1000 · the last person hears inf · first that does not fit: person 932"
    )
    assert text(WhisperLab()) == "times=1.1, people=100 · the last person hears 12500 · first that does not fit: none"


def test_the_whisper_lab_tells_louder_quieter_and_equal_apart():
    assert "That is a shout." in said(WhisperLab())
    assert "It can no longer be heard." in said(WhisperLab(times=0.9))
    assert "All 100 people hear the same." in said(WhisperLab(times=1.0))
    assert "no number" in said(WhisperLab(people=1000))
