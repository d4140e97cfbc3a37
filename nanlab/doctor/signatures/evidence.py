"""The common parts of all signatures."""

from dataclasses import dataclass, field

from nanlab.doctor.onset import Onset, before, find_onset
from nanlab.doctor.ranks import Ranks, compare
from nanlab.doctor.readers.event import Event
from nanlab.doctor.run import Point, Run


@dataclass(frozen=True)
class Evidence:
    """What some lines say for or against suspects. Weights are natural logs of likelihood ratios and add up."""

    says: str
    lines: tuple[int, ...]
    weights: dict[str, float] = field(default_factory=dict)


@dataclass
class Findings:
    """What all signatures start from, found once: the run, its onset, the finite losses before it, the ranks."""

    run: Run
    onset: Onset | None
    before: list[Point]
    ranks: Ranks | None

    @classmethod
    def of(cls, run: Run, *settled: Onset | None) -> "Findings":
        """From a run; `settled` is its onset where that is known already."""
        onset = settled[0] if settled else find_onset(run)
        return cls(run, onset, before(run, onset), compare(run, onset))

    @property
    def first(self) -> Onset:
        """The onset, for signatures that run only where there is one."""
        assert self.onset is not None
        return self.onset

    @property
    def event(self) -> Event | None:
        """The line of the onset, where it carries bad values."""
        if self.onset is None:
            return None
        here = (e for e in self.run.events if e.line == self.onset.line)
        return next((e for e in here if any(not v.finite for v in e.values)), None)

    @property
    def half(self) -> bool:
        """Whether a setting says that the run uses fp16."""
        return bool(self.run.signals("half")) and not self.run.signals("bf16")
