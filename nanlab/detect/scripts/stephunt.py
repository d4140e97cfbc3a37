"""The tracer of a script, which is on while its steps are hunted, and what is known besides of where data came from."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import _disable_current_modes

from nanlab import suspects
from nanlab.detect import patching
from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.report import Report
from nanlab.detect.origin.slice import slice_back
from nanlab.detect.scripts.arrays import ArrayErrors
from nanlab.detect.scripts.loading import Loading
from nanlab.detect.state.values import count
from nanlab.detect.trace.labels import place_of, user_frame
from nanlab.detect.trace.provenance import Event
from nanlab.detect.trace.record import external
from nanlab.detect.trace.tracer import Tracer

OUTSIDE = ("nan_in", "inf_in", "nan written", "inf written")  # forms of a value that no watched operation made
GIVEN = {"forward": "input", "loss": "target"}  # where a value shows -> what it came in as
HELD = ("parameter", "buffer", "state", "grad")
BEFORE = "It was made before the step, where the data is built."
SPANS = 64  # fetches of a DataLoader that are remembered


class StepHunt:
    """Says where a value came from: the operation that made it, wherever in the script it stands. `where` is "input" or
    "target" for what was made while data was built or loaded. Does nothing while it is off."""

    def __init__(self) -> None:
        self.tracer: Tracer | None = None
        self.arrays, self.loading = ArrayErrors(), Loading()
        self._built: int | None = None  # operations before the first step
        self._ever = self._gaps = False  # whether it was on before; whether it missed steps
        self._began = 0  # operations before the current one
        self._spans: deque[tuple[int, int]] = deque(maxlen=SPANS)  # operations inside a DataLoader

    @property
    def on(self) -> bool:
        return self.tracer is not None

    def listen(self) -> Callable[[], None]:
        """Follows loaders and arrays until the returned function is called."""
        stack = ExitStack()
        stack.enter_context(self.arrays)
        stack.callback(self.loading.listen())
        stack.callback(patching.around_batch(self._fetching))
        stack.callback(patching.on_arrays(self._array_came))
        return stack.close

    def turn_on(self, roots: Iterable[nn.Module], optimizers: Iterable[Optimizer]) -> None:
        if self.tracer is None:
            first = not self._ever
            self._gaps, self._ever = self._ever, True
            self.tracer = Tracer()
            for root in roots:
                self.tracer.saw_root(root)
            for one in optimizers:
                self.tracer.saw_optimizer(one)
            self._built, self._began = None if first else 0, 0
            self._spans.clear()
            self.tracer.__enter__()

    def turn_off(self) -> None:
        if self.tracer is not None:
            self.tracer.__exit__(None, None, None)
            self.tracer = None

    # where the program stands

    def begins(self) -> None:
        """A step begins, at the latest: the operations from the first differentiable one on are its own."""
        if self.tracer is not None and self._built is None:
            first = self.tracer.program.first_differentiable
            self._built = self._began = self.tracer.program.number + 1 if first is None else first

    def ended(self, by_hand: bool = False) -> None:
        """A step ended; what comes now belongs to the next one. Only of an optimizer's step does the tracer know."""
        if self.tracer is not None:
            program = self.tracer.program
            program.first_differentiable, program.step = None, program.step + by_hand
            self._began = program.number + 1
            self.tracer.looked = None

    def _fetching(self, fetch: Callable[[], object]) -> object:
        before = self.tracer.program.number if self.tracer is not None else 0
        batch = fetch()
        if self.tracer is not None and self.tracer.program.number > before:
            self._spans.append((before, self.tracer.program.number))
        return batch

    def _array_came(self, t: Tensor) -> None:
        """An array of NumPy's became a tensor: what is bad in it was handed over by this line."""
        if self.tracer is None:
            return
        with _disable_current_modes():
            counts = count(t)
            if counts is not None:
                event = external(self.tracer, t, counts)
                event.place, event.source = place_of(user_frame(sys._getframe(1))[0]), "an array of NumPy's"

    # what it says

    def explain(self, where: str, bad: Sequence[Tensor | Event], step: int) -> Report:
        """Where `bad` came from. Needs to be on."""
        assert self.tracer is not None
        with _disable_current_modes():
            report = explain(self.tracer, where, bad, step=step)
            event = self._origin(bad)
            if event is not None and _came_from_outside(event):
                return self._outside(report, event)
            if event is not None and event.kind != "external" and self._is_built(event.number):
                report.where = GIVEN.get(report.where or "", report.where)
                report.notes.append(BEFORE)
            return report

    def _origin(self, bad: Sequence[Tensor | Event]) -> Event | None:
        assert self.tracer is not None
        events = [one if isinstance(one, Event) else next(iter(self.tracer.tags.of(one)), None) for one in bad]
        found = slice_back([event for event in events if event is not None])
        return found.origins[0].event if found.origins else None

    def _is_built(self, number: int) -> bool:
        inside = any(first < number <= last for first, last in self._spans)
        return inside or (self._built is not None and number < self._built)

    def _outside(self, report: Report, event: Event) -> Report:
        """No watched operation made the value: a DataLoader's worker, NumPy or plain Python did."""
        report.where = GIVEN.get(report.where or "", report.where)
        if self.loading.workers:
            report = self.loading.again(report)
        error = self.arrays.latest(bool(event.counts.nan)) if report.form in OUTSIDE else None  # else it is known
        if error is None:
            if report.form in OUTSIDE[2:]:  # it came with the data, no line of the program wrote it
                report.form, report.suspect = "nan_in" if event.counts.nan else "inf_in", "bad_data"
                report.lesson = suspects.get(report.suspect).lesson
            return report
        report.file, report.line, report.columns, report.trail = error.place.file, error.place.line, None, []
        report.module, report.target, report.op = None, None, error.text.rpartition(" in ")[2]
        report.form = error.form or report.form
        report.suspect = "softmax_or_exp_overflow" if error.form == "overflow" else "log_or_div_of_zero"
        report.lesson = suspects.get(report.suspect).lesson
        report.notes.append(f'NumPy made it, outside torch; it said there: "{error.text}".')
        return report

    # numbers that the script read or asked about

    def asked(self) -> Event | None:
        """The bad value that the script asked torch about (``isnan``, ``isfinite``) in the current step, if any."""
        event = self.tracer.looked if self.tracer is not None else None
        return event if event is not None and event.number >= self._began else None

    def is_made(self, bad: Tensor | Event) -> bool:
        """Whether an operation made it, and not a line that writes it on purpose."""
        origin = self._origin([bad])
        return origin is not None and origin.kind == "op"

    def step_of(self, bad: Tensor | Event, steps: int) -> int:
        """The step in which it was made, where the tracer has counted them all."""
        origin = self._origin([bad])
        return origin.step if origin is not None and not self._gaps else steps

    def forget_asked(self) -> None:
        if self.tracer is not None:
            self.tracer.looked = None

    def read(self, in_step: bool) -> Event | None:
        """The last bad number that the script took out of a tensor; only the current step's where `in_step`."""
        event = self.tracer.last_scalar if self.tracer is not None else None
        return event if event is not None and (not in_step or event.number >= self._began) else None

    def alive(self) -> Event | None:
        """The last bad 0-dim result of the current step that is still in memory."""
        if self.tracer is None:
            return None
        events = [e for e in self.tracer.tags.alive() if e.kind == "op" and e.shape == () and e.number >= self._began]
        return max(events, key=lambda e: e.number, default=None)


def _came_from_outside(event: Event) -> bool:
    """Whether it stands for data that became a tensor: an array, a list, what a worker sent."""
    if event.op == "lift_fresh":
        return bool(event.shape)  # a single number is one that the program wrote there
    return event.kind == "external" and event.source_kind not in HELD
