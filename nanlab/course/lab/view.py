"""A lab on the screen: what the learner does to its controls, and what is shown of it."""

from html import escape

from nanlab.course.front import form, front
from nanlab.course.lab import page
from nanlab.course.lab.experiment import Experiment
from nanlab.course.lab.survey import Survey


class LabView:
    """The live view of one lab. `widget` is what JupyterLab shows."""

    def __init__(self, lab: Experiment):
        self.lab, self.wrong = lab, ""
        shown = lab.beginner if lab.depth == "beginner" and lab.beginner else [c.name for c in lab.controls]
        self.shown = [control for control in lab.controls if control.name in shown]
        self.survey = Survey(lab, self._mapped) if lab.map else None
        self.widget = front(
            form.form(
                "lab",
                [control.about() for control in self.shown],
                [button.label for button in lab.buttons],
                buttons_label=lab.buttons_label,
                map=self.survey.about() if self.survey else None,
            ),
            self.asked,
        )
        self._mapped()
        lab.changed = self.draw
        self.draw()

    def asked(self, event: dict) -> None:
        """Answer one act of the learner."""
        match event:
            case {"name": name, "text": text}:
                self.lab.entries[name].take(text)
            case {"step": name, "up": up}:
                self.lab.entries[name].step(up)
            case {"slide": name, "rung": rung}:
                self.lab.entries[name].slide(rung)
            case {"cell": (x, y)} if self.survey:
                for name, value in self.survey.settings(x, y).items():
                    self.lab.entries[name].put(value)
            case {"press": n}:
                self._press(self.lab.buttons[n].sets)
            case {"map": True} if self.survey:
                self.survey.start()
                return
            case {"stop": True} if self.survey:
                self.survey.stop()
                return
        self._run()

    def draw(self) -> None:
        """Show the lab's present result."""
        lab, rows = self.lab, self.lab.table(self.lab.result)
        self.widget.show(
            picture=lab.live_chart().svg(),
            here=self.survey.here() if self.survey else None,
            controls=self._states(),
            buttons=[form.button(pressed=self._is_set(button.sets)) for button in lab.buttons],
            sentence=self._sentence(),
            more=(page.table(*rows) if rows is not None else "") + _code(lab.code()),
        )

    def _run(self) -> None:
        values = {name: entry.value for name, entry in self.lab.entries.items()}
        if values != self.lab.values:
            self.wrong = self.lab.run(values)
            if self.survey and not self.wrong:
                self.survey.settings_changed()
        elif self.wrong:
            self.wrong = ""
        self.widget.show(controls=self._states(), sentence=self._sentence())

    def _press(self, sets) -> None:
        for name, value in ({c.name: c.value for c in self.lab.controls} | dict(sets)).items():
            self.lab.entries[name].put(value)

    def _states(self) -> dict[str, dict]:
        return {control.name: self.lab.entries[control.name].state() for control in self.shown}

    def _is_set(self, sets) -> bool:
        return self.lab.values == {c.name: c.value for c in self.lab.controls} | dict(sets)

    def _sentence(self) -> str:
        """What is said: first what is wrong with an entry, then what the picture shows."""
        bad = [entry.message for entry in self.lab.entries.values() if entry.bad]
        return self.wrong or " ".join([*bad, self.lab.said()])

    def _mapped(self) -> None:
        if self.survey:
            self.widget.show(map=self.survey.state())


def _code(code: str) -> str:
    return f"<details><summary>This state as code, to copy</summary><pre>{escape(code)}</pre></details>"
