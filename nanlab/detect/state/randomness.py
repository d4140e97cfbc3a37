"""Takes and restores the random state of a step: torch on the CPU and its devices, Python's and NumPy's.

torch's CPU state costs about a microsecond and is taken every step. ``random.getstate`` and ``numpy.random.get_state``
cost ten to twenty times that, so the two generators' memory is compared first and their state is taken only after they
were used; a loop body that never draws from them pays about a microsecond, and a replay is exact either way.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

MT_BYTES = 4 * 624 + 4  # a Mersenne twister's 624 words and its position, in CPython and in NumPy alike


@dataclass(slots=True)  # not frozen: one is made every step
class RandomState:
    """The state of every generator that a training step draws from by default. `python` and `numpy` are what
    ``random.getstate()`` and ``numpy.random.get_state()`` return; `devices` maps ``"cuda:0"`` to that device's state.

    Generators that the program made itself (``torch.Generator``, ``numpy.random.default_rng``) are not in it.
    """

    torch: Tensor
    devices: dict[str, Tensor] = field(default_factory=dict)
    python: tuple | None = None
    numpy: tuple | None = None

    def restore(self) -> list[str]:
        """Sets the generators back; returns what could not be set, such as a device that this machine lacks."""
        missing = []
        torch.set_rng_state(self.torch)
        for device, state in self.devices.items():
            kind, _, index = device.partition(":")
            if device not in _device_names():
                missing.append(f"the random state of {device}, which this machine lacks")
            elif kind == "mps":
                torch.mps.set_rng_state(state)
            else:
                getattr(torch, kind).set_rng_state(state, int(index))
        if self.python is not None:
            random.setstate(self.python)
        if self.numpy is not None:
            import numpy

            numpy.random.set_state(self.numpy)
        return missing


class Recorder:
    """Takes a `RandomState` again and again, cheaply. Keep one per loop."""

    def __init__(self) -> None:
        self._python = _Lazy(_python_memory(), random.getstate, lambda state: state[2] is not None)
        self._numpy: _Lazy | None = None

    def take(self) -> RandomState:
        """The state now. Cost: about 2 µs; 7 µs more after Python's generator was used, 25 µs after NumPy's."""
        return RandomState(*self.take_raw())

    def take_raw(self) -> tuple:
        """The arguments of the `RandomState` now, for a loop that takes one every step and uses hardly any."""
        numpy, python = self._numpy, self._python
        if numpy is None:
            numpy = self._numpy = _numpy_lazy()
        if python.position.value != python.at or python.word.value != python.seen or python.always:
            python.read_again()
        if numpy.position.value != numpy.at or numpy.word.value != numpy.seen or numpy.always:
            numpy.read_again()
        return _cpu_state(), _device_states() if _HAS_DEVICES else _NONE, python.state, numpy.state


def now() -> RandomState:
    """The random state at this moment, all generators read in full."""
    return Recorder().take()


class _Lazy:
    """A Mersenne twister's state, read again only if its memory changed: its position, or the words at the beginning,
    which are all renewed when the position starts over. `half` says that it holds a spare normal draw, which lies
    elsewhere, so that the state must be read every time. Without addresses it is read every time."""

    __slots__ = ("_half", "_read", "_unknown", "always", "at", "position", "seen", "state", "word")

    def __init__(self, places: tuple[int, int] | None, read: Callable[[], Any], half: Callable[[Any], bool]) -> None:
        self._read, self._half = read, half
        self.position = ctypes.c_int32.from_address(places[0]) if places else ctypes.c_int32()
        self.word = ctypes.c_uint64.from_address(places[1]) if places else ctypes.c_uint64()
        self.always = self._unknown = places is None
        self.at, self.seen = -1, -1
        self.state: tuple | None = None

    def read_again(self) -> None:
        self.at, self.seen, self.state = self.position.value, self.word.value, self._read()
        self.always = self._unknown or self._half(self.state)


def _python_memory() -> tuple[int, int] | None:
    """Where CPython keeps the position and the words of the generator behind the functions of `random`, or None where
    a look at a fresh generator does not find them at the place expected."""
    if sys.implementation.name != "cpython":
        return None
    probe = random.Random(0)
    memory = ctypes.string_at(id(probe) + object.__basicsize__, MT_BYTES)
    words = [int.from_bytes(memory[i : i + 4], sys.byteorder) for i in range(0, MT_BYTES, 4)]
    *key, position = probe.getstate()[1]
    if words != [position, *key]:
        return None
    start = id(random._inst) + object.__basicsize__
    return start, start + 4


def _numpy_lazy() -> _Lazy:
    """NumPy gives out the address of its generator's state itself; other bit generators are read in full. Where NumPy's
    generator is not loaded there is nothing to read."""
    if "numpy.random" not in sys.modules:
        return _Lazy(None, lambda: None, lambda state: False)
    import numpy

    generator = numpy.random.mtrand._rand._bit_generator
    start = generator.ctypes.state_address
    places = (start + MT_BYTES - 4, start) if type(generator).__name__ == "MT19937" else None
    return _Lazy(places, numpy.random.get_state, lambda state: state[3] == 1)


def _device_names() -> list[str]:
    names = [
        f"{kind}:{i}" for kind in ("cuda", "xpu") if _started(kind) for i in range(getattr(torch, kind).device_count())
    ]
    return [*names, "mps:0"] if _has_mps else names


def _device_states() -> dict[str, Tensor]:
    states = {}
    for name in _device_names():
        kind, _, index = name.partition(":")
        states[name] = torch.mps.get_rng_state() if kind == "mps" else getattr(torch, kind).get_rng_state(int(index))
    return states


def _started(kind: str) -> bool:
    module = getattr(torch, kind, None)
    return module is not None and module.is_initialized()


_cpu_state = torch.default_generator.get_state
_has_mps = torch.backends.mps.is_available()
_HAS_DEVICES = _has_mps or torch.cuda._is_compiled() or torch.xpu._is_compiled()
_NONE: dict[str, Tensor] = {}
