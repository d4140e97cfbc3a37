"""A guess at a question: committed once and for good, then answered with the reason."""

from nanlab.course.progress import progress
from nanlab.course.questions import Question

LETTERS = "abcdefgh"


class Guess:
    """One question, and what was committed to it, once something was."""

    def __init__(self, question: Question):
        self.question = question
        self.committed: float | int | None = None
        self.note = ""

    def commit(self, answer: str | float) -> str:
        """Commit `answer`, an option's letter or a number, for good; returns what the reveal says.

        ValueError for what is no answer, RuntimeError when one was committed: run the cell again to begin anew. Side
        effect: the answer is kept in the learner's progress.
        """
        if self.committed is not None:
            raise RuntimeError("this question was answered; run its cell again to answer anew")
        self.committed = self._parse(answer)
        right, _ = self.question.judge(self.answer)
        kept = progress()
        kept.record_answer(self.question.id, self.said(), right)
        self.note = kept.note
        return self.reveal()

    @property
    def answer(self) -> float | int:
        """What was committed; RuntimeError before."""
        if self.committed is None:
            raise RuntimeError("this question was not answered yet")
        return self.committed

    def said(self) -> str:
        """The committed answer in the words of the question."""
        if self.question.kind == "choice":
            return self.question.options[int(self.answer)].text
        return f"{self.answer:g} {self.question.unit}".strip()

    def reveal(self) -> str:
        """The reason for what was committed, then the right answer and its reason."""
        question = self.question
        right, reason = question.judge(self.answer)
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
            letters = LETTERS[: len(self.question.options)]
            if len(text) != 1 or text not in letters:
                raise ValueError(f"answer with one of {', '.join(letters)}")
            return letters.index(text)
        try:
            return float(str(answer).strip().replace(",", "").replace("_", ""))
        except ValueError:
            raise ValueError("type one number, such as 250 or 1e6, or inf") from None
