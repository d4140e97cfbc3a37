"""When the run went bad: the first line that shows it, its step, and whether it was inf or NaN."""

from dataclasses import dataclass

from nanlab.doctor.readers.event import HOLLOW, Event, Value
from nanlab.doctor.readers.roles import is_validation
from nanlab.doctor.run import Point, Run
from nanlab.doctor.silent import silent_signs

RECOVERED = 3  # finite losses after a bad gradient that show it did no harm


@dataclass(frozen=True)
class Onset:
    """The first line of the fault. `step` is as the log prints it, None when the log counts no steps; `sign` says what
    showed it: ``loss``, ``gradient``, ``state``, ``message``, ``silent`` or ``unnamed``."""

    line: int
    step: int | None
    kind: str
    sign: str
    inferred: bool = False  # no number stands with the bad line: the step follows from the lines around it


def find_onset(run: Run) -> Onset | None:
    """The first sign that a value which matters was not finite, or None. Metrics, validation, running means and skips
    of a loss scaler that recovers are no such sign."""
    found = [*_values(run), *_messages(run), *_silent(run), *_collapse(run)]
    return min(found, key=lambda onset: (onset.line, onset.sign == "message"), default=None)


def _values(run: Run) -> list[Onset]:
    counts = _Counts(run)
    for event in run.events:
        for value in event.values:
            if not value.finite and counts.bad(event, value):
                sign = "loss" if value.role in {"other", "metric"} else value.role
                loose = value.prose or value.role in {"state", "unnamed"}  # not part of a step's record
                step, inferred = _step(run, event, loose)
                return [_spoilt_mean(run, event) or Onset(event.line, step, _kind(event), sign, inferred)]
    return []


def _collapse(run: Run) -> list[Onset]:
    """A loss scale that fell to its floor: the first skip of the series that led there."""
    floor = run.signals("collapse")
    if not floor:
        return []
    series = [hit for hit in run.signals("skip") if hit.line <= floor[0].line] or floor
    first = next(e for e in run.events if e.line == series[0].line)
    return [Onset(first.line, first.step if first.counted else None, "overflow", "scaler")]


class _Counts:
    """Which bad values count, given the whole run."""

    def __init__(self, run: Run) -> None:
        losses = run.points("loss")
        self._unborn = before_the_first_update(run)
        self._gradients = lasting_gradients(run)
        self._means_only = not losses
        self._sound = bool(losses) and all(p.value.finite for p in losses)
        metrics = run.points("metric") or run.points("metric", "loss", validation=True)
        self._bare = not losses and not metrics  # nothing has a name: a bad column is a bad loss
        self._hollow = {name: _lasting_gap(run, name) for name in _hollow_names(run)}
        self._lone = set() if losses else _lone_metrics(run)

    def bad(self, event: Event, value: Value) -> bool:
        if value.raw in HOLLOW:
            return event.line == self._hollow.get(value.name)
        if value.name in self._lone and value.role == "metric":
            return True
        if event.line in self._unborn or (value.prose and value.role == "state" and self._sound):
            return False  # there is no loss yet; or a remark in a run whose losses are all finite
        if value.role == "gradient" and not (value.validation or value.average):
            return event.line in self._gradients
        spoilt = self._means_only and value.average and value.role == "loss" and not value.validation
        column = self._bare and value.role == "unnamed" and not event.trace and value.raw != "NaN"  # pandas prints NaN
        return matters(event, value) or spoilt or column


def _hollow_names(run: Run) -> set[str]:
    return {v.name for e in run.events for v in e.values if v.raw in HOLLOW and not v.validation}


def _lasting_gap(run: Run, name: str) -> int | None:
    """The line from which a loss is printed as null for good: a gap at the end that is longer than all before it."""
    gaps, start = [0], None
    for event in run.events:
        for value in event.values:
            if value.name == name:
                if value.raw not in HOLLOW:
                    start = None
                    gaps.append(0)
                else:
                    start = event.line if start is None else start
                    gaps[-1] += 1
    return start if start is not None and gaps[-1] >= 2 and gaps[-1] > max(gaps[:-1], default=0) else None


def _lone_metrics(run: Run) -> set[str]:
    """Metrics of a log without a loss that were finite, turned bad and stayed so."""
    last: dict[str, list[bool]] = {}
    for event in run.events:
        for value in event.values:
            if value.role == "metric" and event.counted:
                last.setdefault(value.name, []).append(value.finite)
    return {name for name, ok in last.items() if ok[0] and not ok[-1] and ok == sorted(ok, reverse=True)}


def first_token(run: Run) -> Onset | None:
    """The first record that holds inf or NaN at all, harmful or not; or the first skip of a scaler."""
    for event in run.events:
        bad = [v for v in event.values if not v.finite and v.raw not in HOLLOW and v.role != "constant"]
        if bad and not event.trace:
            return Onset(event.line, event.step, "nan" if any(v.kind == "nan" for v in bad) else "inf", "token")
    skips = run.signals("skip")
    return Onset(skips[0].line, None, "overflow", "scaler") if skips else None


def validation_onset(run: Run) -> Onset | None:
    """The first validation loss that was bad: the first sign of a fault that training never shows."""
    bad = (p for a in (False, True) for p in run.points("loss", validation=True, average=a) if not p.value.finite)
    first = min(bad, key=lambda point: point.line, default=None)
    return None if first is None else Onset(first.line, first.event.step, first.value.kind, "validation")


def before_the_first_update(run: Run) -> set[int]:
    """Lines of a bar at 0 whose loss is NaN because there is none yet, in a run whose later losses are all finite."""
    points = run.losses()
    bad = [p for p in points if not p.value.finite]
    good = [p for p in points if p.value.finite]
    if bad and good and good[0].line > bad[-1].line:
        blocks = {p.event.block for p in bad}
        silent = [(e, v) for e in run.events if e.block in blocks for v in e.values if not v.finite]
        if len(silent) >= 3 * len(bad) and any(v.role == "gradient" for _, v in silent):
            return {e.line for e, _ in silent}  # nothing measured yet: gradients like these would have spoilt the run
    early = bool(bad) and all(p.event.total and p.event.step == 0 for p in bad)
    return {p.line for p in bad} if early and len(good) >= 2 and good[0].line > bad[-1].line else set()


def _spoilt_mean(run: Run, bad: Event) -> Onset | None:
    """A running mean of the loss that turned bad before a printed value did: the fault fell between two records."""
    for event in run.events:
        if event.line >= bad.line:
            return None
        for value in event.values:
            if value.average and value.role == "loss" and not value.validation and not value.finite:
                return Onset(event.line, event.step, value.kind, "loss")
    return None


def matters(event: Event, value: Value) -> bool:
    """Whether a bad value harms training; of gradients only `lasting_gradients` do."""
    if value.role == "state" and ("running_" in value.name or "moving_" in value.name):
        return True  # a buffer: it stays bad whoever reads it
    if value.validation or value.average or (value.role == "unnamed" and value.raw == "NaN"):  # pandas prints NaN
        return False
    if value.role in {"unnamed", "other"}:  # a loss by another name, where the line shows no loss that is finite
        return event.counted and not any(v.role == "loss" for v in event.values)
    return value.role in {"loss", "gradient"} or (value.role == "state" and not event.validation)


def lasting_gradients(run: Run) -> set[int]:
    """Lines of bad gradients that no finite one follows before the loss is bad: the others a scaler skipped."""
    if not grad_is_fault(run):
        return set()
    signs = [p.line for p in run.points("loss") if not p.value.finite] + [s.line for s in silent_signs(run)]
    end = min(signs, default=1 << 60)
    points = [p for p in run.points("gradient") if p.line <= end]
    good = max((p.line for p in points if p.value.finite), default=0)
    healthy = [p.line for p in run.losses() if p.value.finite and p.line < end]
    bad = {p.line for p in points if not p.value.finite}
    last = max(bad, default=0)
    if signs and sum(line > last for line in healthy) >= RECOVERED:
        return set()
    return {line for line in bad if line > good} or (set() if signs else bad)


def grad_is_fault(run: Run) -> bool:
    """False where gradients overflowed only now and then, the loss stayed finite and later gradients were finite:
    a loss scaler at its work."""
    gradients = run.points("gradient")
    bad = [p for p in gradients if not p.value.finite]
    if not bad:
        return False
    losses = run.points("loss")
    if any(not p.value.finite for p in losses) or silent_signs(run):
        return True
    good_after = [p for p in gradients if p.value.finite and p.line > bad[-1].line]
    if good_after:
        return len(bad) > max(3, len(gradients) // 2)
    if all(p.value.kind == "inf" and "skip" in p.event.low for p in bad) and any(p.line > bad[-1].line for p in losses):
        return False
    return len(bad) >= 2 or not any(p.line > bad[-1].line for p in losses)


def _messages(run: Run) -> list[Onset]:
    """Reports of a bad value. NaN in the data counts where it stopped the program, or where no loss is shown."""
    bare = not run.points("loss")
    stops = {e.line for e in run.events if e.trace == "exception"}
    about_data = {hit.line for hit in run.signals("data")}
    for hit in run.signals("nonfinite", "replaced", "data"):
        counts = hit.line not in about_data or bare or hit.line in stops
        if counts and not hit.validation and not is_validation(hit.text[:80]):
            event = next((e for e in run.events if e.line == hit.line), None)
            step, inferred = _step(run, event, prose=True) if event else (hit.step, True)
            kind = "nan" if "nan" in hit.text or "inf" not in hit.text or "infinite or nan" in hit.text else "inf"
            return [Onset(hit.line, step, kind, "message", inferred)]
    return []


def _silent(run: Run) -> list[Onset]:
    return [Onset(sign.line, sign.step, "nan", "silent") for sign in silent_signs(run)[:1]]


def _step(run: Run, event: Event, prose: bool) -> tuple[int | None, bool]:
    """The step of a bad line. A sentence without a counter that comes after a finite record speaks of the next step;
    the second value says that the step was inferred."""
    if event.counted or not prose or event.step is None:
        return event.step, not event.counted and bool(event.trace)
    healthy = any(
        e.block == event.block
        and e.line < event.line
        and any(v.role == "loss" and v.finite and not v.validation for v in e.values)
        for e in _near(run, event)
    )
    if not healthy:
        return event.step, True
    following = next(
        (e for e in run.events if e.line > event.line and e.counted and e.step is not None and e.step != event.step),
        None,
    )
    if following is not None and any(v.role == "loss" and not v.finite for v in following.values):
        return following.step, True
    return event.step + 1, True


def _near(run: Run, event: Event) -> list[Event]:
    return [e for e in run.events if event.line - 400 <= e.line <= event.line]


def _kind(event: Event) -> str:
    """NaN or inf: what the total loss shows, else the worse of what the line shows."""
    total = [
        v
        for v in event.values
        if v.role == "loss" and not v.finite and v.name.split("/")[-1] in {"loss", "total_loss", "total loss"}
    ]
    bad = total or [v for v in event.values if not v.finite and v.role != "metric"]
    bad = bad or [v for v in event.values if not v.finite]
    return "nan" if any(v.kind == "nan" for v in bad) else "inf"


def before(run: Run, onset: Onset | None) -> list[Point]:
    """The finite training losses ahead of the onset, in order."""
    points = [p for p in run.losses() if p.value.finite]
    return points if onset is None else [p for p in points if p.line < onset.line]
