"""The live view of a question: options or a number field, a commit, and the reasons behind a fold."""

from html import escape

from nanlab.course.guess import LETTERS, Guess

_STYLE = """<style>
.nanlab-predict { max-width: 680px; border-left: 4px solid #0072b2; padding: 2px 0 4px 14px; margin: 4px 0; }
.nanlab-predict .widget-html-content { line-height: 1.45; font-size: 14px; color: var(--jp-content-font-color1, #222); }
.nanlab-predict .widget-html-content p { margin: 2px 0 4px; }
.nanlab-predict .widget-html-content pre { font-size: 12px; line-height: 1.35; padding: 6px 8px; margin: 4px 0;
  background: var(--jp-layout-color2, #f2f2f2); overflow-x: auto; }
.nanlab-predict .widget-radio { width: auto; max-width: 660px; }
.nanlab-predict .widget-radio-box { width: auto; max-width: 640px; }
.nanlab-predict .widget-radio-box label { height: auto; min-height: 24px; white-space: normal; line-height: 1.4;
  font-size: 14px; padding: 2px 0; margin: 0; align-items: flex-start; max-width: 640px; flex: 0 0 auto;
  color: var(--jp-content-font-color1, #222); }
.nanlab-predict .widget-radio-box input { margin: 0 8px 0 2px; position: relative; top: -1px; flex: 0 0 auto; }
.nanlab-predict .jupyter-button { color: var(--jp-ui-font-color1, #222); }
.nanlab-predict .jupyter-button:focus-visible, .nanlab-predict input:focus-visible,
.nanlab-predict summary:focus-visible { outline: 2px solid #0072b2; outline-offset: 1px; }
.nanlab-predict summary { cursor: pointer; padding: 2px 0; }
.nanlab-predict .nanlab-note { font-size: 12px; }
</style>"""
_NOTHING = "Choose one first."


def build(prediction: Guess):
    """The widget of `prediction`. Raises ImportError without ipywidgets."""
    import ipywidgets as w

    question = prediction.question
    shows = f"<pre>{escape(question.shows.strip())}</pre>" if question.shows else ""
    head = w.HTML(f"{_STYLE}<p><strong>Predict.</strong> {escape(question.text.strip())}</p>{shows}")
    entry = _radio(w, prediction) if question.kind == "choice" else _number(w, prediction)
    button = w.Button(description="Commit", tooltip="Commit this answer for good", layout=w.Layout(width="96px"))
    answer = w.HTML(_status("Not answered yet."))

    def commit(_) -> None:
        text = _letter(entry.index) if question.kind == "choice" else entry.value
        try:
            prediction.commit(text)
        except ValueError as wrong:
            answer.value = _status(_NOTHING if question.kind == "choice" else f"{str(wrong).capitalize()}.")
            return
        entry.disabled = button.disabled = True
        answer.value = _committed(prediction)

    button.on_click(commit)
    row = w.HBox([button], layout=w.Layout(margin="2px 0 0"))
    box = w.VBox([head, entry, row, answer], layout=w.Layout(overflow="visible"))
    box.add_class("nanlab-predict")
    return box


def _radio(w, prediction: Guess):
    options = [option.text for option in prediction.question.options]
    return w.RadioButtons(options=options, value=None, layout=w.Layout(width="auto"))


def _number(w, prediction: Guess):
    unit = prediction.question.unit
    label = f"your guess ({unit})" if unit else "your guess"
    style = {"description_width": "initial"}
    return w.Text(description=label, placeholder="such as 250 or 1e6", style=style, layout=w.Layout(width="320px"))


def _letter(index: int | None) -> str:
    return "" if index is None else LETTERS[index]


def _status(text: str) -> str:
    return f'<div role="status" aria-live="polite"><em>{escape(text)}</em></div>'


def _committed(prediction: Guess) -> str:
    """What was committed and, folded, the reasons. Right and wrong look alike until the fold is opened."""
    question = prediction.question
    right, reason = question.judge(prediction.answer)
    inside = f"<p><strong>Yours is {'right' if right else 'not what happens'}.</strong> {escape(reason)}</p>"
    if not right and question.kind == "choice":
        inside += f"<p><strong>{escape(question.right.text)}</strong> {escape(question.right.reason)}</p>"
    elif not right:
        inside += f"<p><strong>{question.answer:g} {escape(question.unit)}.</strong> {escape(question.reason)}</p>"
    note = f'<p class="nanlab-note">{escape(prediction.note)}</p>' if prediction.note else ""
    return (
        f'<div role="status" aria-live="polite"><p>Committed: <strong>{escape(prediction.said())}</strong></p></div>'
        f"<details><summary>Why (open after you have run the next cell)</summary>{inside}</details>{note}"
    )
