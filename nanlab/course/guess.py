"""A guess at a question: committed once, then answered with the reason; kept, and taken back on demand."""

from nanlab.course import entered
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
        """Commit `answer`, an option's letter or a number, until `forget`; returns what the reveal says.

        ValueError for what is no answer, RuntimeError when one was committed. Side effect: the answer is kept in the
        learner's progress.
        """
        if self.committed is not None:
            raise RuntimeError("this question was answered; forget() the answer to answer anew")
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

    def remember(self) -> bool:
        """Take up what was committed in an earlier run; True when there was something."""
        kept = progress().answer(self.question.id)
        if self.committed is not None or kept is None:
            return False
        self.committed = self._recall(str(kept.get("committed", "")))
        return self.committed is not None

    def forget(self) -> None:
        """Take the answer back. Side effect: it is removed from the learner's progress."""
        self.committed = None
        kept = progress()
        kept.forget_answer(self.question.id)
        self.note = kept.note

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
        return entered.parse(str(answer))

    def _recall(self, said: str) -> float | int | None:
        """What `said` was committed as; None when the question has changed since."""
        if self.question.kind == "choice":
            texts = [option.text for option in self.question.options]
            return texts.index(said) if said in texts else None
        try:
            return entered.parse(said.removesuffix(self.question.unit))
        except ValueError:
            return None
