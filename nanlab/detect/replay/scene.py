"""A scene: all that one failing step needs to be run again, in memory or in a file.

It holds the batch, the random state, the buffers, the weights and the optimizer state as they were before the step, the
last 64 steps, and the versions and devices it was taken with.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nanlab.detect.replay import scenefile
from nanlab.detect.replay.interventions import Experiment
from nanlab.detect.replay.replay import Replay, accumulate, replay, why_not
from nanlab.detect.replay.scenefile import SceneError
from nanlab.detect.state.checkpoint import keep
from nanlab.detect.state.decoding import Decoder
from nanlab.detect.state.nesting import encode, map_tensors
from nanlab.detect.state.printable import printable
from nanlab.detect.state.randomness import RandomState, now
from nanlab.detect.state.training import Optimizers, as_list, named_buffers, named_weights
from nanlab.detect.state.trajectory import Trajectory

__all__ = ["Scene", "SceneError"]


@dataclass
class Scene:
    """One captured step. `batches` are what the loop body was given since the optimizer last stepped: one, or the
    micro-batches of a gradient accumulation. `not_captured` names what replay will lack."""

    batches: list[object]
    step: int = 0
    random: RandomState | None = None
    weights: dict[str, Tensor] = field(default_factory=dict)
    buffers: dict[str, Tensor] = field(default_factory=dict)
    optimizers: list[Any] = field(default_factory=list)
    trajectory: Trajectory = field(default_factory=Trajectory)
    report: dict[str, object] | None = None
    taken_with: dict[str, str] = field(default_factory=lambda: surroundings())
    not_captured: list[str] = field(default_factory=list)

    @property
    def batch(self) -> object:
        """The last (usually the only) batch."""
        return self.batches[-1]

    @classmethod
    def capture(
        cls,
        model: nn.Module | None,
        optimizer: Optimizers,
        batch: object,
        *,
        step: int = 0,
        random: RandomState | None = None,
        buffers: dict[str, Tensor] | None = None,
        trajectory: Trajectory | None = None,
    ) -> Scene:
        """The state right now, weights and optimizer state copied to the CPU; call it before a step, or in a ``except
        NonFiniteError``. `random` and `buffers` stand in for the present ones where those have moved on. Costs one
        copy of the weights and of the optimizer state in CPU memory."""
        held = {name: _copy(b) for name, b in named_buffers(model).items()}
        return cls(
            batches=[batch],
            step=step,
            random=random or now(),
            weights={name: _copy(p) for name, p in named_weights(model, optimizer).items()},
            buffers={**held, **{name: _copy(b) for name, b in (buffers or {}).items()}},
            optimizers=[map_tensors(o.state_dict(), _copy) for o in as_list(optimizer)],
            trajectory=trajectory or Trajectory(),
        )

    def save(self, path: str | os.PathLike) -> Path:
        """Writes the scene to `path`, all or nothing, and returns the path. Raises `SceneError` where that fails.
        Objects of the batch that no scene can hold are left out and named in `not_captured`."""
        lost: list[str] = []
        data = {
            "batches": [encode(batch, lost) for batch in self.batches],
            "step": self.step,
            "random": encode(_random_to_data(self.random), lost),
            "weights": encode(self.weights, lost),
            "buffers": encode(self.buffers, lost),
            "optimizers": encode(self.optimizers, lost, "the optimizer state"),
            "trajectory": self.trajectory.to_json(),
            "report": encode(self.report, lost, "the report"),
            "taken_with": self.taken_with,
        }
        self.not_captured += [what for what in lost if what not in self.not_captured]
        return scenefile.write({**data, "not_captured": self.not_captured}, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Scene:
        """The scene saved at `path`. No code in the file is run: it is read as tensors and plain data. The batch comes
        back on the device it was on, or on the CPU where this machine has no such device."""
        data, parts = scenefile.read(path)
        try:
            decode, on_cpu = Decoder(parts), Decoder(parts, "cpu")
            return cls(
                batches=[decode(batch) for batch in data["batches"]],
                step=int(data["step"]),
                random=_random_from_data(on_cpu(data["random"])),
                weights=on_cpu(data["weights"]),
                buffers=on_cpu(data["buffers"]),
                optimizers=on_cpu(data["optimizers"]),
                trajectory=Trajectory.from_json(data["trajectory"]),
                report=decode(data["report"]),
                taken_with=dict(data["taken_with"]),
                not_captured=list(data["not_captured"]),
            )
        except Exception as error:  # whatever the parts of something else give rise to
            raise SceneError(f"{path} is marked as a scene but lacks parts of one; save the scene again") from error

    def put_back(self, model: nn.Module | None, optimizer: Optimizers = None) -> list[str]:
        """Sets weights, buffers, optimizer state and random state to the scene's, in place; returns what could not be.
        Raises `SceneError` when the model or the optimizers are not those of the scene."""
        _fill(named_weights(model, optimizer), self.weights, "weights")
        _fill(named_buffers(model), self.buffers, "buffers")
        given = as_list(optimizer)
        if given and len(given) != len(self.optimizers):
            raise SceneError(
                f"the scene has {len(self.optimizers)} optimizers, {len(given)} were given; give the same ones"
            )
        for one, state in zip(given, self.optimizers, strict=False):
            one.load_state_dict(map_tensors(state, _copy))
        return self.random.restore() if self.random is not None else ["the random state"]

    @contextmanager
    def restored(self, model: nn.Module | None, optimizer: Optimizers = None) -> Iterator[list[str]]:
        """Sets the model, its optimizers and the random state to the scene's for the length of a block, then puts all
        of it back, gradients included; yields what could not be set. Holds a second copy of weights and optimizer
        state meanwhile."""
        put_back = keep(model, optimizer)
        try:
            missing = self.put_back(model, optimizer)
            for p in named_weights(model, optimizer).values():
                p.grad = None
            yield missing
        finally:
            put_back()

    def experiment(self, step_fn: Callable[[object], object], model: nn.Module | None = None,
                   optimizer: Optimizers = None) -> Experiment:  # fmt: skip
        """What runs the scene's step again with one thing changed: ``without(3)``, ``float64()``, ``patched()``.
        Arguments as for `replay`; it is the last micro-batch that changes."""
        before = self.batches[:-1]
        return Experiment(lambda batch: accumulate(step_fn, [*before, batch]), model, optimizer, self.batch,
                          lambda: self.restored(model, optimizer), self.step)  # fmt: skip

    def replay(self, step_fn: Callable[[object], object], model: nn.Module | None = None,
               optimizer: Optimizers = None) -> Replay:  # fmt: skip
        """Runs ``step_fn(batch)`` once more from this scene (for each of its micro-batches in turn), under the hunt,
        compiled code run eagerly, and says what came of it.

        `step_fn` computes the loss and either calls backward itself or returns the loss. `model` and `optimizer` are
        filled from the scene and put back as they were when the replay ends; so are gradients and the random state.
        What `step_fn` raises passes through. Cost: one step under the hunt, and one plain step more where compiled code
        is loaded and the eager step was finite.
        """
        lacks = why_not(self.not_captured, self.changed_since())
        return replay(self.experiment(step_fn, model, optimizer), lacks)

    def changed_since(self) -> list[str]:
        """What differs between now and the surroundings it was taken in, such as ``torch 2.12.0, now 2.13.0``."""
        here = surroundings()
        return [f"{name} {was}, now {here.get(name, 'missing')}" for name, was in self.taken_with.items()
                if here.get(name) != was]  # fmt: skip

    def __str__(self) -> str:
        kept = sum(t.numel() for t in self.weights.values())
        holds = f"{len(self.batches)} batch(es), {kept:,} weights, {len(self.buffers)} buffers"
        lines = [f"scene of step {self.step}: {holds}", f"run before it: {self.trajectory}"]
        return printable("\n".join([*lines, *(f"not captured: {n}" for n in self.not_captured)]))


def surroundings() -> dict[str, str]:
    """Versions, device names and settings that a replay's numbers depend on."""
    numpy = sys.modules.get("numpy")
    here = {
        "Python": platform.python_version(),
        "torch": str(torch.__version__),
        "NumPy": str(numpy.__version__) if numpy is not None else "not loaded",
        "processor": platform.machine(),
        "threads": str(torch.get_num_threads()),
        "deterministic algorithms": str(torch.are_deterministic_algorithms_enabled()),
    }
    if torch.cuda.is_initialized():
        here["devices"] = ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
    return here


def _copy(t: Tensor) -> Tensor:
    return t.detach().to("cpu", copy=True)


def _fill(live: dict[str, Tensor], saved: dict[str, Tensor], what: str) -> None:
    if missing := sorted(set(saved) ^ set(live)):
        raise SceneError(
            f"the scene's {what} and the model's differ: {', '.join(missing[:5])}; give the model of the scene"
        )
    with torch.no_grad():
        for name, t in live.items():
            if t.shape != saved[name].shape:
                shapes = f"{tuple(saved[name].shape)} in the scene and {tuple(t.shape)} in the model"
                raise SceneError(f"{name} is {shapes}; give the model of the scene")
            t.copy_(saved[name])


def _random_to_data(state: RandomState | None) -> dict | None:
    """The twisters' words as tensors: plain data would be 1,249 numbers, one object each."""
    if state is None:
        return None
    python, numpy = state.python, state.numpy
    words = (python[0], torch.tensor(python[1]), python[2]) if python else None
    key = (numpy[0], torch.tensor([int(word) for word in numpy[1]]), *numpy[2:]) if numpy else None
    return {"torch": state.torch, "devices": state.devices, "python": words, "numpy": key}


def _random_from_data(data: dict | None) -> RandomState | None:
    if data is None:
        return None
    python, numpy = data["python"], data["numpy"]
    if python is not None:
        python = (python[0], tuple(python[1].tolist()), python[2])
    if numpy is not None:
        import numpy as np

        numpy = (numpy[0], np.array(numpy[1].tolist(), dtype=np.uint32), *numpy[2:])
    return RandomState(data["torch"], data["devices"], python, numpy)
