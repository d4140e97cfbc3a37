"""Every lab shows itself three ways, keeps the last valid picture, and leaves torch's random state alone."""

import sys

import pytest
import torch

from nanlab.course.lab import Button, Choice, Lab, Number
from nanlab.course.lab.base import DEPTHS
from nanlab.lessons.loss_explosion import ExplosionLab
from nanlab.lessons.recurrent import RecurrentLab
from nanlab.lessons.softmax import SoftmaxLab
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


def enter(lab, name, text):
    lab.view.asked({"name": name, "text": text})


def press(lab, label):
    lab.view.asked({"press": [button.label for button in lab.buttons].index(label), "texts": {}})


def shown(lab):
    return lab.widget.shown


def test_a_valid_entry_redraws_picture_sentence_and_table(lab):
    before = lab.widget.picture
    enter(lab, "start", "2")
    assert lab.values["start"] == 2.0
    assert lab.widget.picture != before
    assert "It ends at 16." in shown(lab)["sentence"]
    assert "<td>16</td>" in shown(lab)["more"]


def test_an_invalid_entry_is_answered_stays_in_its_field_and_keeps_the_picture(lab):
    before = lab.widget.picture
    enter(lab, "start", "a lot")
    field = shown(lab)["controls"]["start"]
    assert field["bad"] and field["message"] == "“a lot” is not a number. The picture shows 1."
    assert shown(lab)["sentence"].startswith(field["message"])
    assert lab.widget.picture == before
    enter(lab, "kind", "1")
    assert lab.values == {"start": 1.0, "kind": "float16"}
    assert shown(lab)["controls"]["start"]["bad"], "another control must not hide what is wrong with this one"
    enter(lab, "start", "1")
    assert not shown(lab)["controls"]["start"]["bad"]
    assert "not a number" not in shown(lab)["sentence"]


def test_settings_that_cannot_be_computed_are_answered_in_the_sentence(lab):
    before = lab.widget.picture
    enter(lab, "start", "13")
    assert "13 is not played" in shown(lab)["sentence"]
    assert lab.widget.picture == before
    enter(lab, "start", "1")
    assert "13 is not played" not in shown(lab)["sentence"]
    enter(lab, "start", "2")
    assert "It ends at 16." in shown(lab)["sentence"]


def test_plus_minus_and_slider_step_the_field_along_the_ladder(lab):
    lab.view.asked({"step": "start", "up": True})
    assert shown(lab)["controls"]["start"]["text"] == "2" and shown(lab)["controls"]["start"]["rung"] == 1
    lab.view.asked({"slide": "start", "rung": 2})
    assert lab.values["start"] == 4.0
    lab.view.asked({"step": "start", "up": True})
    assert "4 is the highest step" in shown(lab)["controls"]["start"]["message"]


def test_what_is_typed_is_not_written_over_and_what_moves_the_field_is(lab):
    moves = shown(lab)["controls"]["start"]["moves"]
    enter(lab, "start", "2.0")
    assert shown(lab)["controls"]["start"]["moves"] == moves
    press(lab, "Ten")
    assert shown(lab)["controls"]["start"]["moves"] > moves


def test_a_button_sets_its_controls_resets_the_others_and_stays_pressed(lab):
    enter(lab, "kind", "1")
    assert [button["pressed"] for button in shown(lab)["buttons"]] == [False]
    press(lab, "Ten")
    assert lab.values == {"start": 10.0, "kind": "float32"}
    assert shown(lab)["controls"]["start"]["text"] == "10"
    assert shown(lab)["controls"]["kind"]["text"] == "0"
    assert [button["pressed"] for button in shown(lab)["buttons"]] == [True]


def test_the_run_before_stands_pale_behind_the_new_one(lab):
    first = lab.result
    enter(lab, "start", "2")
    assert [list(ghost.y) for ghost in lab.live_chart().ghosts] == [first]
    assert lab.chart(lab.result).ghosts == (), "what is stored shows one run alone"


def test_set_moves_the_fields_too(lab):
    lab.set(start=4.0)
    assert shown(lab)["controls"]["start"]["text"] == "4"
    assert lab.result[-1] == 32.0


def test_the_state_as_code_makes_the_same_lab(lab):
    enter(lab, "start", "2")
    assert lab.code().endswith("Doubling(start=2.0)")
    assert Doubling(depth="beginner").code().endswith("Doubling(depth='beginner')")


def test_depth_changes_no_stored_text_and_a_wrong_one_is_named():
    texts = {Doubling(depth=depth)._repr_mimebundle_()[0]["text/plain"] for depth in DEPTHS}
    assert len(texts) == 1
    with pytest.raises(ValueError, match="depth is one of beginner, developer, researcher"):
        Doubling(depth="expert")


@pytest.mark.parametrize("kind", [SoftmaxLab, RecurrentLab, ExplosionLab])
def test_a_beginner_sees_fewer_controls_and_a_researcher_reads_the_law(kind):
    beginner, developer, researcher = (kind(depth=depth) for depth in DEPTHS)
    assert len(beginner.widget.form["controls"]) < len(developer.widget.form["controls"])
    assert researcher.said().startswith(developer.said()) and researcher.said() != developer.said()


def test_the_stored_picture_is_named_for_those_who_cannot_see_it():
    _, metadata = Doubling()._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == metadata["vscode_altText"] == "Doubling; value: 4 values, from 1 to 8"


def test_every_picture_of_a_lab_is_computed_on_one_thread_and_the_count_is_put_back(lab, monkeypatch):
    threads, seen = torch.get_num_threads(), []
    monkeypatch.setattr(Doubling, "compute", lambda self, **_: seen.append(torch.get_num_threads()) or [1.0] * 4)
    lab.set(start=3.0)
    assert seen == [1] and torch.get_num_threads() == threads


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


def test_every_control_and_button_has_a_name(lab):
    form = lab.widget.form
    assert all(about["label"] for about in form["controls"]) and all(form["buttons"])


def test_without_anywidget_the_same_form_is_built_of_ipywidgets(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanlab.course.front.component", None)
    lab = Doubling()
    assert VIEW in lab._repr_mimebundle_()[0]
    lab.widget._fields["start"].value = "2"
    assert "It ends at 16." in lab.widget._sentence.value
    lab.widget._buttons[0].click()
    assert lab.values["start"] == 10.0 and lab.widget._fields["start"].value == "10"
    lab.widget._fields["start"].value = "a lot"
    assert "not a number" in lab.widget._messages["start"].value


def test_without_ipywidgets_the_picture_stays_and_the_text_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanlab.course.front.component", None)
    monkeypatch.setitem(sys.modules, "nanlab.course.front.plain", None)
    data, _ = Doubling()._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    assert "pip install 'nanlab[course]'" in data["text/plain"]
