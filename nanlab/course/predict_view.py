"""The live view of a question: options or a number field, a commit, the reasons behind a fold, and a way back."""

from html import escape

from nanlab.course.front import form, front
from nanlab.course.guess import LETTERS, Guess

_COMMIT, _AGAIN = 0, 1  # the places of the two buttons
_HINT = "such as 250 or 1e6"


class PredictionView:
    """One question, live. What was committed before stands in it again, and can be taken back."""

    def __init__(self, prediction: Guess):
        self.prediction, self._moves, self._message = prediction, 1, ""
        question = prediction.question
        shows = f"<pre>{escape(question.shows.strip())}</pre>" if question.shows else ""
        head = f"<p><strong>Predict.</strong> {escape(question.text.strip())}</p>{shows}"
        buttons = ["Commit", "Answer anew"]
        self.widget = front(form.form("question", [_control(question)], buttons, head=head, live=False), self.asked)
        self.remembered = prediction.remember()
        self._show("" if prediction.committed is None else self._entered())

    def asked(self, event: dict) -> None:
        """Commit, or begin anew."""
        if event.get("press") == _AGAIN:
            self.prediction.forget()
            self.remembered = False
            self._moves += 1
            self._show("")
        elif event.get("press") == _COMMIT and self.prediction.committed is None:
            self._commit(str(event["texts"]["answer"]))

    def _commit(self, text: str) -> None:
        choice = self.prediction.question.kind == "choice"
        try:
            self.prediction.commit(LETTERS[int(text)] if choice and text else text)
        except ValueError as wrong:
            self._message = "Choose one first." if choice else f"{str(wrong)[0].upper()}{str(wrong)[1:]}."
            self._show(text)
            return
        self._message = ""
        self._show(text)

    def _show(self, text: str) -> None:
        done = self.prediction.committed is not None
        self.widget.show(
            controls={"answer": form.state(text, self._message, bad=bool(self._message), moves=self._moves)},
            buttons=[form.button(hidden=done), form.button(hidden=not done)],
            sentence=self._sentence(done),
            more=_reasons(self.prediction) if done else "",
            fixed=done,
        )

    def _sentence(self, done: bool) -> str:
        if self._message:
            return self._message
        if not done:
            return "Not answered yet."
        return f"{'Committed earlier' if self.remembered else 'Committed'}: {self.prediction.said()}"

    def _entered(self) -> str:
        committed = self.prediction.answer
        return str(committed) if self.prediction.question.kind == "choice" else f"{committed:g}"


def _control(question) -> dict:
    if question.kind == "choice":
        return form.control("radio", "answer", "your answer", options=[option.text for option in question.options])
    label = f"your guess ({question.unit})" if question.unit else "your guess"
    return form.control("text", "answer", label, placeholder=_HINT)


def _reasons(prediction: Guess) -> str:
    """The reasons, folded. Right and wrong look alike until the fold is opened."""
    question = prediction.question
    right, reason = question.judge(prediction.answer)
    inside = f"<p><strong>Yours is {'right' if right else 'not what happens'}.</strong> {escape(reason)}</p>"
    if not right and question.kind == "choice":
        inside += f"<p><strong>{escape(question.right.text)}</strong> {escape(question.right.reason)}</p>"
    elif not right:
        inside += f"<p><strong>{question.answer:g} {escape(question.unit)}.</strong> {escape(question.reason)}</p>"
    note = f'<p class="nanlab-note">{escape(prediction.note)}</p>' if prediction.note else ""
    return f"<details><summary>Why (open after you have run the next cell)</summary>{inside}</details>{note}"
