"""Labs and questions in a real JupyterLab: by keyboard alone, with a live picture, a sentence, and no axe violation."""

import nbformat
import pytest
from playwright.sync_api import expect

CELLS = (
    "from nanlab import predict\nfrom nanlab.lessons.loss_explosion import ExplosionLab\nExplosionLab()",
    'predict("02.third_loss")',
    "from nanlab.lessons.read_the_log import LogLab\nLogLab()",
    "from nanlab.lessons.start_here import choose_track\nchoose_track()",
)
LOG = "step 1 loss 2.31\nstep 2 loss 2.30\nstep 3 loss nan\n"


@pytest.fixture(scope="module")
def shown(jupyter, open_notebook):
    """A notebook with a lab, a question, the box for a log and the track chooser, run from top to bottom."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, jupyter.root / "live.ipynb")
    opened = open_notebook("live.ipynb")
    opened.run_all()
    expect(opened.panel.locator("svg[role=img]")).to_be_visible()
    return opened


@pytest.fixture
def lab(shown):
    """The lab, back at its first settings."""
    shown.panel.get_by_role("button", name="No fix").click()
    expect(shown.panel.get_by_role("textbox", name="learning rate", exact=True)).to_have_value("0.1")
    expect(_sentence(shown)).to_contain_text("At step 3")
    return shown


def _sentence(shown):
    return shown.panel.locator(".nanlab-sentence").first


def _picture(shown):
    return shown.panel.locator("svg[role=img]").first


def _choose(shown, chosen, index):
    """Choose by keyboard, as in any list."""
    chosen.focus()
    for _ in range(index - chosen.evaluate("list => list.selectedIndex")):
        shown.page.keyboard.press("ArrowDown")


def _press_into(shown, field, text):
    field.focus()
    shown.page.keyboard.press("Control+A")
    shown.page.keyboard.type(text)


@pytest.mark.parametrize("label", ["learning rate", "input scale"])
def test_typing_into_a_number_field_changes_picture_and_sentence(lab, label):
    before = _picture(lab).get_attribute("aria-label")
    _press_into(lab, lab.panel.get_by_role("textbox", name=label), {"learning rate": "0.001"}.get(label, "1"))
    expect(_sentence(lab)).to_contain_text("Every value stays finite")
    assert _picture(lab).get_attribute("aria-label") != before


@pytest.mark.parametrize(
    ("label", "told"), [("number format", "bf16 max"), ("then divide inputs by", "At step 6 the first value")]
)
def test_a_radio_group_is_one_tab_stop_and_follows_the_arrow_keys(lab, label, told):
    before = _picture(lab).get_attribute("aria-label")
    group = lab.panel.get_by_role("group", name=label)
    group.get_by_role("radio").first.focus()
    lab.page.keyboard.press("ArrowRight")
    expect(group.get_by_role("radio").nth(1)).to_be_checked()
    expect(_sentence(lab)).to_contain_text(told)
    assert _picture(lab).get_attribute("aria-label") != before
    lab.page.keyboard.press("Tab")
    assert not group.evaluate("group => group.contains(document.activeElement)")


@pytest.mark.parametrize(("name", "rate"), [("lower learning rate", "0.03"), ("higher learning rate", "0.3")])
def test_the_steppers_are_named_and_work_by_keyboard(lab, name, rate):
    lab.panel.get_by_role("button", name=name, exact=True).focus()
    lab.page.keyboard.press("Enter")
    expect(lab.panel.get_by_role("textbox", name="learning rate")).to_have_value(rate)


@pytest.mark.parametrize(("role", "name"), [("textbox", "learning rate"), ("slider", "learning rate, slider")])
def test_arrow_keys_step_a_number_in_its_field_and_on_its_slider(lab, role, name):
    lab.panel.get_by_role(role, name=name, exact=True).focus()
    lab.page.keyboard.press("ArrowUp")
    expect(lab.panel.get_by_role("textbox", name="learning rate", exact=True)).to_have_value("0.3")
    expect(lab.panel.get_by_role("slider", name="learning rate, slider")).to_have_attribute("aria-valuetext", "0.3")


def test_a_held_key_leaves_no_backlog(lab):
    """Thirty steps within a moment end where the last one points, soon after it."""
    field = lab.panel.get_by_role("textbox", name="learning rate", exact=True)
    field.focus()
    for _ in range(30):
        lab.page.keyboard.press("ArrowDown")
    lab.page.wait_for_timeout(500)
    settled = field.input_value()
    lab.page.wait_for_timeout(1000)
    assert field.input_value() == settled != "0.1"


@pytest.mark.parametrize(
    ("button", "told"),
    [
        ("Lower the learning rate", "This fix cures it"),
        ("Scale the inputs before", "This fix cures it"),
        ("Divide the inputs by 10 after", "This fix does not cure it"),
    ],
)
def test_each_fix_is_tried_by_keyboard_and_judged(lab, button, told):
    lab.panel.get_by_role("button", name=button).focus()
    lab.page.keyboard.press("Enter")
    expect(_sentence(lab)).to_contain_text(told)


def test_an_invalid_entry_is_answered_beside_the_field_and_the_picture_stays(lab):
    before = _picture(lab).evaluate("element => element.outerHTML")
    field = lab.panel.get_by_role("textbox", name="learning rate")
    _press_into(lab, field, "fast")
    message = lab.panel.locator(".nanlab-message.nanlab-bad")
    expect(message).to_have_text("“fast” is not a number. The picture shows 0.1.")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(_sentence(lab)).to_contain_text("“fast” is not a number")
    expect(field).to_have_accessible_description(message.inner_text())
    beside, box = message.bounding_box(), field.bounding_box()
    assert abs(beside["x"] - box["x"]) < 40 and 0 <= beside["y"] - box["y"] < 60
    assert _picture(lab).evaluate("element => element.outerHTML") == before
    _press_into(lab, field, "0.1")
    expect(message).to_have_count(0)


def test_a_question_is_answered_by_keyboard_and_the_reasons_are_folded(shown):
    question = shown.panel.locator(".nanlab-question").first
    question.get_by_role("radio").first.focus()
    shown.page.keyboard.press("ArrowDown")
    question.get_by_role("button", name="Commit").focus()
    shown.page.keyboard.press("Enter")
    expect(question.get_by_text("Committed:")).to_be_visible()
    expect(question.get_by_role("radio").first).to_be_disabled()
    reason = question.locator("details p").first
    assert question.get_by_role("button", name="Commit").count() == 0
    expect(reason).to_be_hidden()
    question.locator("summary").focus()
    shown.page.keyboard.press("Enter")
    expect(reason).to_be_visible()


def test_the_map_follows_the_arrow_keys_and_the_pointer_and_moves_the_controls(lab):
    chart = lab.panel.get_by_role("application", name="what becomes of the run")
    expect(chart.locator(".nanlab-cell.nanlab-worst").first).to_be_visible(timeout=30_000)
    expect(lab.panel.locator(".nanlab-wait")).to_be_hidden(timeout=60_000)
    tones = ", ".join(f".nanlab-{tone}" for tone in ("good", "slow", "rises", "bad", "worst"))
    assert chart.locator(f".nanlab-cell:not({tones})").count() == 0
    chart.focus()
    lab.page.keyboard.press("ArrowLeft")
    field = lab.panel.get_by_role("textbox", name="learning rate", exact=True)
    expect(field).to_have_value("0.056")
    chart.locator(".nanlab-cell").first.click()
    expect(field).to_have_value("3.2e-05")
    expect(lab.panel.get_by_role("textbox", name="input scale", exact=True)).to_have_value("0.1")


def test_a_pasted_log_is_diagnosed(shown):
    area = shown.panel.get_by_role("textbox", name="log")
    area.focus()
    shown.page.keyboard.insert_text(LOG)
    shown.panel.get_by_role("button", name="Diagnose").focus()
    shown.page.keyboard.press("Enter")
    expect(shown.panel.get_by_text("line 3").first).to_be_visible()


def test_four_lists_suggest_a_track_by_keyboard(shown):
    lists = shown.panel.locator(".nanlab-page select")
    for n in range(4):
        _choose(shown, lists.nth(n), 2)
    expect(shown.panel.get_by_text("Suggested:")).to_contain_text("developer")


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_nothing_serious_in_the_outputs(shown, theme):
    shown.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    expect(shown.page.locator("body")).to_have_attribute("data-jp-theme-name", theme)
    shown.page.wait_for_timeout(500)
    assert shown.accessibility() == []


def test_nothing_is_cut_off_in_a_window_of_800_pixels(shown):
    shown.page.set_viewport_size({"width": 800, "height": 900})
    shown.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    shown.page.wait_for_timeout(500)
    for output in shown.panel.locator(".jp-OutputArea-output").all():
        wide, shown_width = output.evaluate("element => [element.scrollWidth, element.clientWidth]")
        assert wide <= shown_width + 1, output.inner_text()[:80]
