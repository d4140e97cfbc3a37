"""``predict("02.third_loss")``: a guess, committed before the result is seen. Every lesson asks for some.

What the page stores is the question and one fixed line, whatever was answered before; what is revealed after the
commit does not depend on the answer either, only the reason shown first does.
"""

from html import escape

from nanlab.course import questions
from nanlab.course.progress import progress
from nanlab.course.questions import Question

UNANSWERED = "Not answered yet. Choose, then run the next cell."
_VIEW = "application/vnd.jupyter.widget-view+json"
_LETTERS = "abcdefgh"


class Prediction:
    """One question, waiting for a commit. Show it as the last expression of a cell."""

    def __init__(self, question: Question):
        self.question = question
        self.committed: float | int | None = None
        self.note = ""
        self._box = None

    def commit(self, answer: str | float) -> str:
        """Commit `answer`, an option's letter or a number, for good; returns what the reveal says.

        ValueError for what is no answer, RuntimeError when one was committed: run the cell again to begin anew. Side
        effect: the answer is kept in the learner's progress.
        """
        if self.committed is not None:
            raise RuntimeError("this question was answered; run its cell again to answer anew")
        self.committed = self._parse(answer)
        right, _ = self.question.judge(self.committed)
        kept = progress()
        kept.record_answer(self.question.id, self.said(), right)
        self.note = kept.note
        return self.reveal()

    def said(self) -> str:
        """The committed answer in the words of the question."""
        if self.question.kind == "choice":
            return self.question.options[self.committed].text
        return f"{self.committed:g} {self.question.unit}".strip()

    def reveal(self) -> str:
        """The reason for what was committed, then the right answer and its reason."""
        question = self.question
        right, reason = question.judge(self.committed)
        if right:
            return f"You committed: {self.said()} That is right. {reason}"
        if question.kind == "choice":
            answer, because = question.right.text, question.right.reason
        else:
            answer, because = f"{question.answer:g} {question.unit}".strip(), question.reason
        return f"You committed: {self.said()} {reason} Right: {answer} {because}"

    def _parse(self, answer: str | float) -> float | int:
        if self.question.kind == "choice":
            text = str(answer).strip().lower()
            letters = _LETTERS[: len(self.question.options)]
            if len(text) != 1 or text not in letters:
                raise ValueError(f"answer with one of {', '.join(letters)}")
            return letters.index(text)
        try:
            return float(str(answer).strip().replace(",", "").replace("_", ""))
        except ValueError:
            raise ValueError("type one number, such as 250 or 1e6, or inf") from None

    @property
    def widget(self):
        """The live question, made when first asked for. Needs ipywidgets."""
        if self._box is None:
            from nanlab.course.predict_view import build

            self._box = build(self)
        return self._box

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        data = {"text/plain": plain(self.question), "text/html": html(self.question)}
        try:
            data[_VIEW] = self.widget._repr_mimebundle_()[_VIEW]
        except ImportError:
            data["text/plain"] += "\nAnswering needs ipywidgets: pip install 'nanlab[course]'"
        return data


def predict(id: str) -> Prediction:
    """The question called `id`, such as "02.third_loss", not yet answered; KeyError, naming the others, for none."""
    return Prediction(questions.load(id))


def plain(question: Question) -> str:
    """`question` as text, with the line that stands while it is unanswered."""
    lines = [f"Predict: {question.text.strip()}"]
    lines += [f"    {line}" for line in question.shows.strip().splitlines()]
    lines += [f"  {letter}) {option.text}" for letter, option in zip(_LETTERS, question.options, strict=False)]
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
