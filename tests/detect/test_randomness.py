"""Random state is taken and put back exactly, whoever drew in between and however."""

import random

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nanlab.detect.state import randomness
from nanlab.detect.state.randomness import Recorder, now

DRAWS = {
    "torch": lambda: torch.rand(3).tolist(),
    "random": random.random,
    "gauss": lambda: random.gauss(0, 1),
    "shuffle": lambda: random.sample(range(99), 5),
    "numpy": lambda: numpy.random.rand(3).tolist(),
    "normal": lambda: float(numpy.random.randn()),
    "permutation": lambda: numpy.random.permutation(9).tolist(),
}
draws = st.lists(st.sampled_from(sorted(DRAWS)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(before=draws, skipped=draws, after=draws)
def test_what_is_drawn_after_a_restore_is_what_was_drawn_before(before, skipped, after):
    recorder = Recorder()
    recorder.take()
    for name in before:
        DRAWS[name]()
        recorder.take()
    state = recorder.take()
    first = [DRAWS[name]() for name in after]
    for name in skipped:
        DRAWS[name]()
        recorder.take()
    assert state.restore() == []
    assert [DRAWS[name]() for name in after] == first


def test_python_and_numpy_are_read_again_only_after_they_were_used():
    random.seed(0)  # no spare normal draw is waiting in either
    numpy.random.seed(0)
    recorder = Recorder()
    first = recorder.take()
    assert recorder.take().python is first.python
    assert recorder.take().numpy is first.numpy
    random.random()
    assert recorder.take().python is not first.python


def test_a_python_that_hides_its_generator_is_read_every_time(monkeypatch):
    monkeypatch.setattr(randomness, "_python_memory", lambda: None)
    recorder = Recorder()
    first = recorder.take()
    assert recorder.take().python == first.python
    assert recorder.take().python is not first.python


def test_another_seed_is_noticed():
    recorder = Recorder()
    recorder.take()
    random.seed(5)
    numpy.random.seed(5)
    state = recorder.take()
    assert state.python == random.getstate()
    assert (state.numpy[1] == numpy.random.get_state()[1]).all()


def test_a_device_that_this_machine_lacks_is_named():
    state = now()
    state.devices = {"cuda:7": torch.zeros(16, dtype=torch.uint8)}
    if not torch.cuda.is_available():
        assert state.restore() == ["the random state of cuda:7, which this machine lacks"]


@pytest.fixture(autouse=True)
def _undisturbed():
    state = now()
    yield
    state.restore()
