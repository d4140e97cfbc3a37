"""A scene survives save, load and replay for any batch, and a file that is no scene is refused with a clear word."""

import errno
import os
import random
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from nanlab import Scene
from nanlab.detect.replay import scenefile
from nanlab.detect.replay.scene import SceneError
from nanlab.detect.state.nesting import NotSaved, tensors

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass
class Sample:
    x: object
    label: object
    tags: list = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    inner: object


Pair = namedtuple("Pair", "first second")


def tensor(kind: str, shape: list[int], seed: int) -> torch.Tensor:
    made = torch.randint(0, 9, shape, generator=torch.Generator().manual_seed(seed))
    return {
        "float": lambda t: t.float(),
        "half": lambda t: t.half(),
        "int": lambda t: t,
        "bool": lambda t: t > 4,
        "complex": lambda t: torch.complex(t.float(), -t.float()),
        "view": lambda t: torch.cat([t, t]).float()[: t.shape[0]] if t.dim() else t.float(),
        "expanded": lambda t: t.float().unsqueeze(0).expand(3, *t.shape),
        "transposed": lambda t: t.double().transpose(0, -1) if t.dim() else t.double(),
        "nan": lambda t: t.float() / 0,
    }[kind](made)


KINDS = ("float", "half", "int", "bool", "complex", "view", "expanded", "transposed", "nan")
a_tensor = st.builds(tensor, st.sampled_from(KINDS), st.lists(st.integers(0, 4), max_size=3), st.integers(0, 99))
leaves = (
    a_tensor | st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary()
    | st.sampled_from([torch.float16, torch.device("cpu"), numpy.float32(1.5), numpy.arange(6).reshape(2, 3)])
)  # fmt: skip
batches = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3).map(OrderedDict)
        | st.builds(Sample, inner, inner, st.lists(inner, max_size=2))
        | st.builds(Frozen, inner)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=12,
)


def alike(a: object, b: object) -> bool:
    """Equal in type, shape and value, NaN equal to NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        same = a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        return same and torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
    if isinstance(a, numpy.ndarray | numpy.generic):
        return a.dtype == b.dtype and numpy.array_equal(a, b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, Sample | Frozen):
        return alike(vars(a), vars(b))
    return a == b or (a != a and b != b) or repr(a) == repr(b)


def model_and_optimizer() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


@FEW
@given(batch=batches)
def test_any_nested_batch_survives_save_and_load(batch, tmp_path):
    Scene(batches=[batch]).save(tmp_path / "scene.pt")
    loaded = Scene.load(tmp_path / "scene.pt")
    assert alike(batch, loaded.batch)
    assert loaded.not_captured == []


@FEW
@given(batch=batches)
def test_any_nested_batch_survives_replay(batch, tmp_path):
    """What a step makes of the loaded batch is what it made of the original."""
    model, optimizer = model_and_optimizer()

    def step(given):
        held = sum(
            (t.double().nan_to_num(1.0, 1.0, -1.0).sum() for t in tensors(given) if not t.is_complex()), torch.zeros(())
        )
        return model(torch.rand(5, 3)).sum() * 0.0 + torch.log(held - held.detach())  # log 0, whatever the batch

    Scene.capture(model, optimizer, batch).save(tmp_path / "scene.pt")
    replay = Scene.load(tmp_path / "scene.pt").replay(step, model, optimizer)
    assert replay.verdict == "reproduced"
    assert replay.report.form == "log(0)"


def test_a_scene_brings_back_weights_buffers_optimizer_and_randomness(tmp_path):
    model, optimizer = model_and_optimizer()
    held = [t.clone() for t in (*model.state_dict().values(), *optimizer.state[model[0].weight].values())]
    Scene.capture(model, optimizer, None, step=7).save(tmp_path / "scene.pt")
    drawn = (torch.rand(3), random.random(), random.gauss(0, 1), numpy.random.randn())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    scene = Scene.load(tmp_path / "scene.pt")
    assert scene.put_back(model, optimizer) == []
    now = [*model.state_dict().values(), *optimizer.state[model[0].weight].values()]
    assert all(torch.equal(a, b) for a, b in zip(held, now, strict=True))
    again = (torch.rand(3), random.random(), random.gauss(0, 1), numpy.random.randn())
    assert torch.equal(drawn[0], again[0])
    assert drawn[1:] == again[1:]
    assert scene.step == 7


def test_a_class_that_is_not_loaded_comes_back_with_its_fields(tmp_path):
    @dataclass
    class Local:
        x: torch.Tensor

    Point = namedtuple("Point", "a b")
    Scene(batches=[{"d": Local(torch.ones(2)), "p": Point(1, 2)}]).save(tmp_path / "scene.pt")
    batch = Scene.load(tmp_path / "scene.pt").batch
    assert torch.equal(batch["d"].x, torch.ones(2))
    assert (batch["p"].a, batch["p"].b) == (1, 2)


def test_what_no_scene_can_hold_is_left_out_and_named(tmp_path):
    circle = []
    circle.append(circle)
    scene = Scene(batches=[{"x": torch.ones(1), "f": len, "c": circle, "s": slice(3)}])
    scene.save(tmp_path / "scene.pt")
    loaded = Scene.load(tmp_path / "scene.pt")
    assert isinstance(loaded.batch["f"], NotSaved)
    assert any("batch['f']" in what for what in loaded.not_captured)
    assert any("deeper" in what for what in loaded.not_captured)


def test_loading_runs_no_code_of_a_foreign_file(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    torch.save({scenefile.MARK: scenefile.FORMAT, "batches": [Trap()]}, tmp_path / "trap.pt")
    with pytest.raises(SceneError, match="nothing of it was run"):
        Scene.load(tmp_path / "trap.pt")
    assert not (tmp_path / "sprung").exists()


def test_a_class_with_a_destructor_is_not_built_from_a_file(tmp_path):
    Scene(batches=[Buried(torch.ones(1))]).save(tmp_path / "scene.pt")
    assert type(Scene.load(tmp_path / "scene.pt").batch).__name__ == "SimpleNamespace"


@dataclass
class Buried:
    x: object

    def __del__(self):
        pass


@FEW
@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_truncated_scene_is_refused_with_a_clear_word(cut, tmp_path):
    path = tmp_path / "scene.pt"
    whole = _saved(path)
    path.write_bytes(whole[: int(cut * len(whole))])
    with pytest.raises(SceneError, match=r"truncated or damaged|is not a scene|is empty"):
        Scene.load(path)


@FEW
@given(junk=st.binary(max_size=300), zipped=st.booleans())
def test_a_foreign_file_is_refused_with_a_clear_word(junk, zipped, tmp_path):
    path = tmp_path / "foreign.pt"
    path.write_bytes((scenefile.ARCHIVE if zipped else b"") + junk)
    with pytest.raises(SceneError, match=r"truncated or damaged|is not a scene|is empty"):
        Scene.load(path)


@FEW
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_refused_or_harmless(where, bit, tmp_path):
    path = tmp_path / "scene.pt"
    damaged = bytearray(_saved(path))
    damaged[int(where * len(damaged))] ^= 1 << bit
    path.write_bytes(damaged)
    try:
        loaded = Scene.load(path)
    except SceneError:
        return
    assert alike(loaded.batch, _BATCH)


_BATCH = {"x": torch.arange(12.0).reshape(3, 4), "y": [1, "two", None]}


def _saved(path: Path) -> bytes:
    Scene(batches=[_BATCH]).save(path)
    return path.read_bytes()


def test_other_files_of_torch_and_of_a_newer_nanlab_are_told_apart(tmp_path):
    torch.save({"weight": torch.ones(1)}, tmp_path / "weights.pt")
    with pytest.raises(SceneError, match="a PyTorch file but no scene"):
        Scene.load(tmp_path / "weights.pt")
    torch.save({scenefile.MARK: 99}, tmp_path / "newer.pt")
    with pytest.raises(SceneError, match="scene format 99"):
        Scene.load(tmp_path / "newer.pt")
    torch.save({scenefile.MARK: scenefile.FORMAT}, tmp_path / "half.pt")
    with pytest.raises(SceneError, match="lacks parts"):
        Scene.load(tmp_path / "half.pt")
    with pytest.raises(SceneError, match="there is no scene at"):
        Scene.load(tmp_path / "none.pt")
    with pytest.raises(SceneError, match="cannot be opened"):
        Scene.load(tmp_path)


@pytest.mark.parametrize(
    ("code", "word"),
    [(errno.ENOSPC, "the disk is full"), (errno.EACCES, "is read-only"), (errno.EIO, "OSError")],
)
def test_a_write_that_fails_says_why_and_leaves_the_old_file(code, word, tmp_path, monkeypatch):
    path = tmp_path / "scene.pt"
    before = _saved(path)

    def fails(fd):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(SceneError, match=word):
        Scene(batches=[1]).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_and_a_folder_in_the_way_are_named(tmp_path):
    with pytest.raises(SceneError, match="does not exist; make it"):
        Scene(batches=[1]).save(tmp_path / "none" / "scene.pt")
    with pytest.raises(SceneError, match="that is a folder"):
        Scene(batches=[1]).save(tmp_path)


def test_a_view_into_a_large_tensor_saves_only_what_it_shows(tmp_path):
    Scene(batches=[torch.zeros(1_000_000)[:4]]).save(tmp_path / "scene.pt")
    assert (tmp_path / "scene.pt").stat().st_size < 100_000


def test_a_model_of_another_shape_is_refused_by_name():
    scene = Scene.capture(nn.Linear(3, 2), None, None)
    with pytest.raises(SceneError, match=r"weight is \(2, 3\) in the scene and \(4, 3\) in the model"):
        scene.put_back(nn.Linear(3, 4))
    with pytest.raises(SceneError, match=r"the scene's weights and the model's differ: 0\.bias"):
        scene.put_back(nn.Sequential(nn.Linear(3, 2)))
