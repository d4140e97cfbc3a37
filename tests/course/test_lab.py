"""Every lab shows itself three ways, keeps the last valid picture, and leaves torch's random state alone."""

import sys

import pytest
import torch

from nanlab.course.lab import Button, Choice, Lab, Number
from nanlab.plots import Chart, Series

VIEW = "application/vnd.jupyter.widget-view+json"


class Doubling(Lab):
    """A lab for these tests: doubles a number a few times."""

    controls = (
        Number("start", "start", 1.0, 0.0, 100.0, ladder=(1.0, 2.0, 4.0)),
        Choice("kind", "kind", ("float32", "float16"), "float32"),
    )
    buttons = (Button("Ten", {"start": 10.0}),)
    buttons_label = "Begin at:"

    def compute(self, start, kind):
        torch.manual_seed(0)
        if start == 13:
            raise ValueError("13 is not played")
        return [start * 2**n for n in range(4)]

    def chart(self, result):
        return Chart("Doubling", "step", "value", (Series("value", result),))

    def sentence(self, result):
        return f"It ends at {result[-1]:g}."

    def summary(self, result):
        return f"end {result[-1]:g}"

    def table(self, result):
        return ("step", "value"), [(n, f"{v:g}") for n, v in enumerate(result)]


@pytest.fixture
def lab():
    made = Doubling()
    _ = made.widget
    return made


def test_a_cell_shows_a_live_view_a_picture_and_a_text(lab):
    data, _ = lab._repr_mimebundle_()
    assert set(data) == {VIEW, "image/png", "text/plain"}
    assert data["text/plain"] == "start=1, float32 · end 8"


def test_storing_twice_gives_the_same_text_and_picture():
    (first, _), (second, _) = Doubling()._repr_mimebundle_(), Doubling()._repr_mimebundle_()
    first.pop(VIEW), second.pop(VIEW)
    assert first == second


def test_a_valid_entry_redraws_picture_sentence_and_table(lab):
    before = lab._picture.value
    lab._fields["start"].text.value = "2"
    assert lab.values["start"] == 2.0
    assert lab._picture.value != before
    assert "It ends at 16." in lab._status.value
    assert "<td>16</td>" in lab._rows.value


def test_an_invalid_entry_is_answered_beside_the_field_and_keeps_the_picture(lab):
    before = lab._picture.value, lab._status.value
    field = lab._fields["start"]
    field.text.value = "a lot"
    assert "“a lot” is not a number" in field.message.value
    assert "nanlab-invalid" in field.text._dom_classes
    assert (lab._picture.value, lab._status.value) == before
    field.text.value = "1"
    assert "not a number" not in field.message.value
    assert "nanlab-invalid" not in field.text._dom_classes


def test_settings_that_cannot_be_computed_are_answered_in_the_sentence(lab):
    before = lab._picture.value
    lab._fields["start"].text.value = "13"
    assert "13 is not played" in lab._status.value
    assert lab._picture.value == before
    lab._fields["start"].text.value = "2"
    assert "It ends at 16." in lab._status.value


def test_plus_and_minus_step_the_field(lab):
    field = lab._fields["start"]
    field._stepped(up=True)
    assert field.text.value == "2"
    field._stepped(up=False)
    field._stepped(up=False)
    assert field.text.value == "1"
    assert "lowest" in field.message.value


def test_a_button_sets_its_controls_and_resets_the_others(lab):
    lab._fields["kind"].widget.value = "float16"
    lab._pressed(lab.buttons[0])
    assert lab.values == {"start": 10.0, "kind": "float32"}
    assert lab._fields["start"].text.value == "10"
    assert lab._fields["kind"].widget.value == "float32"


def test_set_moves_the_fields_too(lab):
    lab.set(start=4.0)
    assert lab._fields["start"].text.value == "4"
    assert lab.result[-1] == 32.0


def test_first_values_are_checked():
    assert Doubling(start=5).values["start"] == 5.0
    with pytest.raises(ValueError, match="start: type a number from 0 to 100"):
        Doubling(start=-1)
    with pytest.raises(TypeError, match="no control"):
        Doubling(lr=0.1)


def test_a_run_leaves_torchs_random_state_as_it_was(lab):
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    lab.set(start=3.0)
    assert torch.equal(torch.rand(1), expected)


def test_every_control_has_a_label_and_every_button_a_name(lab):
    import ipywidgets as w

    def walk(widget):
        yield widget
        for child in getattr(widget, "children", ()):
            yield from walk(child)

    for widget in walk(lab.widget):
        if isinstance(widget, (w.Text, w.Dropdown, w.Button)):
            assert widget.description
        assert not isinstance(widget, (w.Output, w.FloatSlider, w.SelectionSlider))


def test_without_ipywidgets_the_picture_stays_and_the_text_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    data, _ = Doubling()._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    assert "pip install 'nanlab[course]'" in data["text/plain"]
