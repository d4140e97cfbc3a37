"""Pictures of lesson 11: the loss of a log as a curve, and three causes of one symptom with their cures."""

from nanlab.doctor import judge, read
from nanlab.lessons.read_the_log.failure import CAUSES, FIXES, run
from nanlab.plots import Cell, Chart, Grid, Mark, Series

SHORT = {"clamp_the_norm": "no division by 0", "check_the_file": "check the rows", "count_first": "count first"}


def log_curve(log: object, title: str = "The loss, as the log tells it", digits: int = 3, plain: bool = False) -> Chart:
    """The training loss that `log` prints (text, path, bytes or file) over its steps, on a log axis, with the first bad
    step marked. A log without step numbers is drawn line by line. ValueError if it prints no loss."""
    run = read(log)
    points = run.losses()
    if not points:
        raise ValueError("this log prints no loss")
    steps = [point.event.step for point in points if point.event.step is not None]
    counted = len(set(steps)) == len(points)
    answer = judge(run)
    marks: list[Mark] = []
    if counted and answer.first_bad_step is not None:
        marks.append(Mark(answer.first_bad_step, f"{answer.first_bad_kind} at step {answer.first_bad_step}"))
    series = Series("loss", [point.value.number for point in points], steps if counted else None)
    x_label = "step" if counted else "record"
    return Chart(title, x_label, "loss", (series,), marks=marks, y_log=True, plain=plain, digits=digits)


def cures() -> Grid:
    """Every cause with every cure, each run again: alive or dead. Nine short runs, about 20 ms."""
    head = [Cell(SHORT[fix.name], "head") for fix in FIXES]
    rows = [[_cell(run(cause, **fix.knobs).finite) for fix in FIXES] for cause in CAUSES]
    note = "Down: what was wrong. Across: the one thing that was changed."
    return Grid("Three causes, three cures", [head, *rows], ["", *CAUSES], note)


def _cell(alive: bool) -> Cell:
    return Cell("alive", "good") if alive else Cell("dead", "bad")
