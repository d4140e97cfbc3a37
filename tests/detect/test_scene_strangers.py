"""Scene files from strangers: no code, no import, little time and memory, and a plain word."""

import contextlib
import io
import os
import pickle
import random
import resource
import subprocess
import sys
import time
import zipfile

import pytest
import torch
from torch import nn

from nanlab.detect.origin.report import Report
from nanlab.detect.replay.scene import Scene, SceneError
from nanlab.detect.replay.scenefile import FORMAT, MARK


def parts(**changes):
    """The data of an honest scene, with `changes`."""
    held = {"batches": [], "step": 0, "random": None, "weights": {"kind": "dict", "ordered": False, "pairs": []}}
    held |= {"buffers": held["weights"], "optimizers": {"kind": "list", "items": []}, "report": None}
    return {MARK: FORMAT, **held, "trajectory": {"rows": []}, "taken_with": {}, "not_captured": [], **changes}


def saved(path, **changes):
    torch.save(parts(**changes), path)
    return path


def zipped(path, program, method=zipfile.ZIP_STORED, **entries):
    """An archive as torch writes it, with this pickle."""
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("scene/data.pkl", program)
        for name, data in entries.items():
            archive.writestr(f"scene/data/{name}", data)
    return path


def doubled(times):
    """A nesting of 2 ** times parts that a file holds in a few bytes each."""
    node = 1
    for _ in range(times):
        node = {"kind": "list", "items": [node, node]}
    return node


def nested(depth):
    node = 1
    for _ in range(depth):
        node = {"kind": "list", "items": [node]}
    return node


def test_an_honest_scene_is_read(tmp_path):
    assert Scene.load(saved(tmp_path / "scene.pt", batches=[nested(20)])).step == 0


HOSTILE = {
    "shared references that unfold": {"batches": [doubled(22)]},
    "deep nesting": {"batches": [nested(80)]},
    "an attribute of torch": {"batches": [{"kind": "torch", "type": "dtype", "name": "load"}]},
    "a device that there is not": {"batches": [{"kind": "torch", "type": "device", "name": "bogus"}]},
    "a tensor that shows more than it stores": {"batches": [{"kind": "tensor", "tensor": torch.zeros(1).expand(1 << 40),
                                                             "device": "cpu", "requires_grad": False}]},
    "a kind that there is not": {"batches": [{"kind": "items"}]},
    "a step that is no number": {"step": [1]},
}  # fmt: skip


@pytest.mark.parametrize("changes", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_scene_is_refused_at_once(changes, tmp_path):
    path, began = saved(tmp_path / "scene.pt", **changes), time.process_time()
    with pytest.raises(SceneError):
        Scene.load(path)
    assert time.process_time() - began < 2


PROGRAMS = {
    "a large bytearray": b"\x80\x02c__builtin__\nbytearray\n\x8a\x05\x00\x00\x00\x00\x01\x85R.",
    "a memo with gaps": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "a call": pickle.dumps(os.getcwd, 2),
    "a state that is set": b"\x80\x02ccollections\nOrderedDict\n)R}b.",
    "a tensor without storage": b"\x80\x02ctorch\nTensor\n\x8a\x05\x00\x00\x00\x00\x01\x85R.",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_instructions_that_no_scene_has_are_refused(program, tmp_path):
    with pytest.raises(SceneError):
        Scene.load(zipped(tmp_path / "scene.pt", program))


def test_an_archive_that_inflates_is_refused(tmp_path):
    path = zipped(tmp_path / "scene.pt", pickle.dumps(parts(), 2), zipfile.ZIP_DEFLATED, big=bytes(1 << 20))
    with pytest.raises(SceneError):
        Scene.load(path)


def test_a_class_is_looked_up_without_importing_its_module(tmp_path):
    program = (
        "import sys, nanlab\nfrom nanlab.detect.replay.scene import Scene\n"
        f"batch = Scene.load({str(tmp_path / 'scene.pt')!r}).batch\n"
        "assert 'nanlab.plots' not in sys.modules and batch.x == 1, batch"
    )
    held = {"kind": "dataclass", "module": "nanlab", "name": "plots", "fields": {"x": 1}}
    saved(tmp_path / "scene.pt", batches=[held])
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_link_in_the_way_of_a_save_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".scene.pt.{os.getpid()}.part").symlink_to(victim)
    Scene(batches=[1]).save(tmp_path / "scene.pt")
    assert victim.read_text() == "mine" and Scene.load(tmp_path / "scene.pt").batch == 1


def test_what_is_shown_steers_no_terminal():
    bad = "a\x1b[2Jb\u202ec\x07"
    scene = Scene(batches=[1], not_captured=[bad])
    report = Report("non-finite", step=0, where="loss", op=bad, module=bad, form="0/0", notes=[bad])
    for text in (str(scene), str(report), report._repr_html_()):
        assert not set("\x1b\u202e\x07") & set(text)
    assert r"a\x1b[2Jb\u202ec\x07" in str(scene)


def test_a_thousand_mutated_scenes_do_no_harm(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    path = tmp_path / "scene.pt"
    Scene.capture(model, torch.optim.Adam(model.parameters()), {"x": [torch.randn(4, 3), (1, "two", None)]}).save(path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    dice, loaded, peak = random.Random(0), set(sys.modules), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1000):
        path.write_bytes(mutated(dice, entries))
        began = time.process_time()
        with contextlib.suppress(SceneError):
            str(Scene.load(path))
        assert time.process_time() - began < 2
    assert all(name.partition(".")[0] in ("torch", "numpy", "encodings") for name in set(sys.modules) - loaded)
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert kib < 64 * 1024  # what 1,000 loads leave behind


def mutated(dice: random.Random, entries: dict[str, bytes]) -> bytes:
    """The archive of `entries` with some bytes of the pickle or of another entry changed, its checksums right."""
    changed = {name: bytearray(data) for name, data in entries.items()}
    pickled = next(name for name in changed if name.endswith("data.pkl"))
    for _ in range(dice.choice((1, 1, 2, 8))):
        victim = changed[pickled if dice.random() < 0.8 else dice.choice(list(changed))]
        at = dice.randrange(len(victim) + 1)
        how = dice.randrange(3)
        if how == 0 and at < len(victim):
            victim[at] = dice.randrange(256)
        elif how == 1:
            del victim[at : at + dice.randrange(1, 9)]
        else:
            victim[at:at] = victim[dice.randrange(len(victim) + 1) :][: dice.randrange(1, 40)]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in changed.items():
            archive.writestr(name, bytes(data))
    return out.getvalue()
