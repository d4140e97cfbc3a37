"""Finds the samples of a batch that make its step non-finite, by halving."""

from __future__ import annotations

from dataclasses import dataclass, field

from nanlab.detect.replay.interventions import Experiment
from nanlab.detect.replay.samples import only, size

MOST_GUILTY = 8  # samples looked for one after the other; a batch with more is bad data as a whole


@dataclass
class Guilty:
    """The outcome. `samples` are the guilty ones, each of which fails alone, unless `together` is set: then they fail
    only as a group. `replays` counts the steps that were run."""

    samples: list[int] = field(default_factory=list)
    together: bool = False
    complete: bool = True
    replays: int = 0
    note: str = ""

    def __str__(self) -> str:
        if not self.samples:
            return self.note
        some = ", ".join(map(str, self.samples))
        what = f"sample{'s' * (len(self.samples) > 1)} {some}" + (" together" if self.together else "")
        return f"{what} ({self.replays} replays){'; ' + self.note if self.note else ''}"


def bisect_batch(experiment: Experiment) -> Guilty:
    """The guilty samples of an experiment's batch (see `Scene.experiment`), in about log2(n) replays for one, as many
    again for each further one.

    Halves the batch and goes on with the half that fails. A half that the step cannot run (batch norm with one sample)
    counts as finite. If neither half fails by itself, the samples at that point fail only together, as with a deviation
    of equal values. All state is put back.
    """
    count = size(experiment.batch)
    if count == 0:
        return Guilty(note="the batch has no samples to tell apart: no list, no tensor with a first dimension")
    left, found = list(range(count)), Guilty()
    while left and len(found.samples) < MOST_GUILTY and _fails(experiment, left):
        group = _narrow(experiment, left)
        found.samples += group
        if len(group) > 1:
            found.together = True
            break
        left = [i for i in left if i not in group]
    found.samples.sort()
    found.replays = experiment.replays
    found.complete = found.together or len(found.samples) < MOST_GUILTY
    if not found.samples:
        found.note = "the step is finite with this batch: it is not the samples"
    elif not found.complete:
        found.note = f"stopped after {MOST_GUILTY}; there may be more"
    return found


def _narrow(experiment: Experiment, suspects: list[int]) -> list[int]:
    """The smallest part of `suspects`, which fail, that halving leads to. The second half is run only at the end, when
    a group of one would be named: it is guilty where the first is not, unless they fail only together."""
    trail = [suspects]
    while len(trail[-1]) > 1:
        middle = (len(trail[-1]) + 1) // 2
        first, second = trail[-1][:middle], trail[-1][middle:]
        trail.append(first if _fails(experiment, first) else second)
    if len(suspects) == 1 or _fails(experiment, trail[-1]):
        return trail[-1]
    for group in reversed(trail):  # a half was taken on trust that does not fail by itself
        if _fails(experiment, group):
            return group
    return suspects


def _fails(experiment: Experiment, samples: list[int]) -> bool:
    return experiment.finite(batch=only(experiment.batch, samples)) is False
