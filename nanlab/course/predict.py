"""``predict("02.third_loss")``: a guess, committed before the result is seen. Every lesson asks for some.

What the page stores is the question and one fixed line, whatever was answered before; what is revealed after the
commit does not depend on the answer either, only the reason shown first does.
"""

from html import escape

from nanlab.course import questions
from nanlab.course.guess import LETTERS, Guess
from nanlab.course.live import with_view
from nanlab.course.predict_view import PredictionView
from nanlab.course.questions import Question

UNANSWERED = "Not answered yet. Choose, then run the next cell."


class Prediction(Guess):
    """One question, waiting for a commit. Show it as the last expression of a cell."""

    _view: PredictionView | None = None

    @property
    def view(self) -> PredictionView:
        """The live question, made when first asked for. Needs ipywidgets."""
        if self._view is None:
            self._view = PredictionView(self)
        return self._view

    @property
    def widget(self):
        """The widget of the live question."""
        return self.view.widget

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        data = {"text/plain": plain(self.question), "text/html": html(self.question)}
        return with_view(data, lambda: self.widget, "Answering")


def predict(id: str) -> Prediction:
    """The question called `id`, such as "02.third_loss", not yet answered; KeyError, naming the others, for none."""
    return Prediction(questions.load(id))


def plain(question: Question) -> str:
    """`question` as text, with the line that stands while it is unanswered."""
    lines = [f"Predict: {question.text.strip()}"]
    lines += [f"    {line}" for line in question.shows.strip().splitlines()]
    lines += [f"  {letter}) {option.text}" for letter, option in zip(LETTERS, question.options, strict=False)]
    if question.kind == "number":
        lines.append(f"  a number{f' in {question.unit}' if question.unit else ''}")
    return "\n".join([*lines, UNANSWERED])


def html(question: Question) -> str:
    """`question` as HTML without scripts or ids, for readers who have no kernel."""
    options = "".join(f"<li>{escape(option.text)}</li>" for option in question.options)
    shows = f"<pre>{escape(question.shows.strip())}</pre>" if question.shows else ""
    choices = f'<ol type="a">{options}</ol>' if options else ""
    return (
        f"<div><p><strong>Predict.</strong> {escape(question.text.strip())}</p>{shows}{choices}"
        f"<p><em>{UNANSWERED}</em></p></div>"
    )
