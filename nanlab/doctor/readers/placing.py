"""Where in the run a line stands: its own counters, or those of the block above it."""

import re

from nanlab.doctor.readers.counters import Counters
from nanlab.doctor.readers.event import Event

_HEADER = re.compile(
    r"^\W{0,40}(?:training |train )?(?:epoch|step|iteration|iter|batch|round)\b", re.IGNORECASE
)  # a line that opens a block
_STAMP = re.compile(r"^\[?[\d:.,/T -]{8,40}\]?")  # a date and a time at the head of a line
_ALONE = re.compile(r"\b(?:global_?step|total_?timesteps|num_updates|iterations?|step)\b")


class Place:
    """The last step and epoch that a reader saw, and how many counted lines there were."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._epoch: float | None = None
        self._block = 0

    def count(self, event: Event, own: Counters, has_loss: bool) -> None:
        """Gives the event its step: its own, or the one of the block that it stands in."""
        event.counted = own.step is not None or own.epoch is not None
        self._block += event.counted
        step = self._step_of(own, has_loss)
        starts = self._starts_a_block(event, own)
        if own.epoch is not None and (has_loss or starts):
            self._enter(own)
        if step is not None and (has_loss or starts or "%|" in event.text or "it/s" in event.text):
            self._step = step
        if own.whole and own.epoch is None and (epoch := _whole(self._epoch)) is not None:
            step = self._step = epoch  # a full bar under "Epoch 3": the epoch says more than the bar
        event.step, event.total = step, own.total
        self.inherit(event)

    def inherit(self, event: Event) -> None:
        """Fills in what the event does not say from what stands above it."""
        if event.step is None:
            event.step = self._step if self._step is not None else _whole(self._epoch)
        event.epoch, event.block = self._epoch, self._block

    def _step_of(self, own: Counters, has_loss: bool) -> int | None:
        """The line's own step; a whole epoch stands for it where nothing finer is counted."""
        if own.step is not None:
            return own.step
        epoch = _whole(own.epoch)
        if epoch is not None and (own.whole or self._step is None or has_loss):
            return epoch
        return _whole(self._epoch) if own.whole else None

    def _starts_a_block(self, event: Event, own: Counters) -> bool:
        alone = own.step is not None and len(event.values) <= 3 and _ALONE.search(event.low) is not None
        return alone or _HEADER.match(_STAMP.sub("", event.text)) is not None

    def _enter(self, own: Counters) -> None:
        """A new epoch ends the count of steps, unless epochs are counted in fractions."""
        if own.epoch != self._epoch and own.step is None and _whole(own.epoch) is not None:
            self._step = None
        self._epoch = own.epoch


def _whole(epoch: float | None) -> int | None:
    return int(epoch) if epoch is not None and epoch == int(epoch) else None
