"""Batches that a DataLoader's workers made: which samples they hold, and the same samples fetched again where the
operations can be watched."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack

from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.data import _utils
from torch.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind

from nanlab.detect import patching
from nanlab.detect.origin.explain import explain
from nanlab.detect.origin.report import Report
from nanlab.detect.state.nesting import tensors
from nanlab.detect.state.values import is_finite
from nanlab.detect.trace.tracer import Tracer

RECENT = 16  # batches: as many as one step is likely to accumulate
MADE_THERE = ("A worker process of the DataLoader made it; the same samples were fetched again in this process to find "
              "the line.")  # fmt: skip
NOT_AGAIN = ("A worker process of the DataLoader made it; the same samples, fetched again in this process, were "
             "finite. num_workers=0 lets the hunt see that code.")  # fmt: skip


class Loading:
    """Follows the DataLoaders of a script."""

    def __init__(self) -> None:
        self.workers = False  # whether any batch came from a worker process
        self._asked: weakref.WeakKeyDictionary[object, deque] = weakref.WeakKeyDictionary()
        self._recent: deque[tuple[_BaseDataLoaderIter, object]] = deque(maxlen=RECENT)

    def listen(self) -> Callable[[], None]:
        stack = ExitStack()
        stack.callback(patching.on_samples(self._asks))
        stack.callback(patching.on_loader(self._gives))
        return stack.close

    def _asks(self, iterator: _BaseDataLoaderIter, samples: object) -> None:
        if iterator._num_workers:
            self._asked.setdefault(iterator, deque()).append(samples)

    def _gives(self, iterator: _BaseDataLoaderIter, batch: object) -> None:
        if iterator._num_workers:
            self.workers = True
            if asked := self._asked.get(iterator):
                self._recent.append((iterator, asked.popleft()))

    def again(self, report: Report) -> Report:
        """`report`, whose value came in with a batch, with the line that made it in place of the one that read it;
        with a note where that line does not show."""
        for iterator, samples in reversed(self._recent):
            if iterator._dataset_kind == _DatasetKind.Map and (found := _fetched(iterator, samples, report.step)):
                found.where, found.sink, found.trajectory = report.where, report.sink, report.trajectory
                found.notes.append(MADE_THERE)
                return found
        if self._recent:
            report.notes.append(NOT_AGAIN)
        return report


def _fetched(iterator: _BaseDataLoaderIter, samples: object, step: int | None) -> Report | None:
    """The report on what is bad in these samples, or None. Runs the dataset's and the collate function's own code."""
    kind = iterator._dataset_kind
    make = _DatasetKind.create_fetcher
    fetcher = make(kind, iterator._dataset, iterator._auto_collation, iterator._collate_fn, iterator._drop_last)
    with _disable_current_modes():
        try:
            with Tracer() as tracer:
                batch = fetcher.fetch(samples)
        except Exception:  # code that needs its worker; the report then stays what it is
            return None
        bad = [t for t in tensors(batch) if isinstance(t, Tensor) and not is_finite(t)]
        return explain(tracer, "loss", bad, step=step or 0) if bad else None


def in_worker() -> bool:
    """Whether this process is a worker of a DataLoader."""
    return _utils.worker.get_worker_info() is not None
