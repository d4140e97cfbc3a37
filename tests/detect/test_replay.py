"""Replays of a scene: the three verdicts, the interventions, the guilty samples, and that nothing stays changed."""

import math

import pytest
import torch
from torch import nn

from nanlab import Scene
from nanlab.detect.replay.bisect import bisect_batch
from nanlab.detect.replay.samples import exchanged, only, size, without


def setting(rows: int = 33, bad: tuple[int, ...] = (17,)):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(rows, 3), torch.randn(rows)
    x[list(bad)] = 0.0

    def step(batch):
        unit = batch["x"] / batch["x"].norm(dim=1, keepdim=True)
        return (model(unit).squeeze(1) - batch["y"]).pow(2).mean()

    return Scene.capture(model, optimizer, {"x": x, "y": y}), step, model, optimizer


def test_a_replay_puts_weights_gradients_and_randomness_back():
    scene, step, model, optimizer = setting()
    with torch.no_grad():
        model[0].weight.fill_(5.0)
    model[0].weight.grad = torch.ones_like(model[0].weight)
    generator = torch.get_rng_state()
    replay = scene.replay(step, model, optimizer)
    assert (replay.verdict, replay.report.form) == ("reproduced", "0/0")
    assert (model[0].weight == 5.0).all()
    assert (model[0].weight.grad == 1.0).all()
    assert model[2].weight.grad is None
    assert torch.equal(generator, torch.get_rng_state())
    assert not optimizer.state


def test_what_is_finite_again_is_not_reproduced_and_names_what_was_not_captured():
    scene, _, model, optimizer = setting()
    scene.not_captured.append("the moon")
    scene.taken_with["torch"] = "1.0"
    replay = scene.replay(lambda batch: model(batch["x"]).sum(), model, optimizer)
    assert replay.verdict == "not reproduced"
    assert "not captured: the moon" in replay.reasons
    assert any(reason.startswith("changed: torch 1.0, now") for reason in replay.reasons)
    assert any("torch.Generator" in reason for reason in replay.reasons)


def test_what_fails_only_when_compiled_is_told_apart():
    def broken(graph, inputs):
        return lambda *args: tuple(out * math.inf for out in graph(*args))

    model = nn.Linear(3, 1)
    compiled = torch.compile(lambda x: model(x), backend=broken)
    scene = Scene.capture(model, None, torch.ones(2, 3))
    assert scene.replay(lambda x: compiled(x).sum(), model).verdict == "only when compiled"
    torch._dynamo.reset()


def test_a_scene_of_micro_batches_accumulates_them():
    model = nn.Linear(1, 1, bias=False)
    scene = Scene.capture(model, None, torch.full((1, 1), 3e38))
    scene.batches = scene.batches * 3
    replay = scene.replay(lambda x: (model(x) * 0.4).sum(), model)
    assert (replay.verdict, replay.report.where) == ("reproduced", "gradient")


def test_leaving_out_the_guilty_sample_cures_and_another_does_not():
    scene, step, model, optimizer = setting()
    trial = scene.experiment(step, model, optimizer)
    assert trial.without(17).cured
    assert not trial.without(3).cured
    assert "at the same place" in str(trial.without(3))
    assert not trial.only(17).cured
    assert trial.only(2).cured
    assert str(trial.only(2)) == "only sample 2: non-finite before, finite after"
    assert trial.other({"x": torch.ones(4, 3), "y": torch.ones(4)}).cured
    with pytest.raises(IndexError, match="samples 0 to 32, not 40"):
        trial.without(40)


def test_float64_cures_an_overflow_and_not_a_0_over_0_and_a_patched_operand_cures_either():
    scene, step, model, optimizer = setting()
    trial = scene.experiment(step, model, optimizer)
    assert not trial.float64().cured
    assert trial.patched().cured
    assert model[0].weight.dtype == torch.float32
    scene = Scene.capture(model, optimizer, torch.full((2, 3), 1e25))
    assert scene.experiment(lambda x: model(x).pow(2).mean(), model, optimizer).float64().cured
    assert scene.batch.dtype == torch.float32


def test_one_guilty_sample_costs_about_log2_replays():
    scene, step, model, optimizer = setting(rows=128, bad=(77,))
    guilty = bisect_batch(scene.experiment(step, model, optimizer))
    assert guilty.samples == [77]
    assert guilty.replays <= math.log2(128) + 3


def test_every_guilty_sample_is_found():
    scene, step, model, optimizer = setting(rows=40, bad=(0, 13, 39))
    guilty = bisect_batch(scene.experiment(step, model, optimizer))
    assert guilty.samples == [0, 13, 39]
    assert not guilty.together
    assert "samples 0, 13, 39" in str(guilty)


def test_samples_that_fail_only_together_are_named_as_a_group():
    _, _, model, optimizer = setting()
    scene = Scene.capture(model, optimizer, {"x": torch.randn(8, 3), "y": torch.zeros(8)})

    def step(batch):
        spread = batch["y"].std() if len(batch["y"]) > 4 else torch.ones(())
        return (batch["y"] / spread).sum() * model(batch["x"]).sum()

    guilty = bisect_batch(scene.experiment(step, model, optimizer))
    assert guilty.together
    assert guilty.samples == list(range(8))


def test_a_step_that_cannot_run_with_one_sample_still_gives_an_answer():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    x = torch.randn(16, 3)
    x[5] = float("nan")
    guilty = bisect_batch(Scene.capture(model, None, x).experiment(lambda batch: model(batch).pow(2).sum(), model))
    assert 5 in guilty.samples
    assert len(guilty.samples) <= 2


def test_a_finite_batch_has_no_guilty_sample():
    scene, step, model, optimizer = setting(bad=())
    guilty = bisect_batch(scene.experiment(step, model, optimizer))
    assert guilty.samples == []
    assert "it is not the samples" in str(guilty)


def test_samples_are_picked_from_columns_lists_of_samples_and_mixtures():
    columns = {"x": torch.arange(6).reshape(3, 2), "names": ["a", "b", "c"], "shared": torch.ones(7)}
    assert size(columns) == 3
    assert without(columns, [1])["names"] == ["a", "c"]
    assert only(columns, [2])["x"].tolist() == [[4, 5]]
    assert len(only(columns, [2])["shared"]) == 7
    images = [torch.zeros(3, 4, 4), torch.ones(3, 5, 5), torch.ones(3, 6, 6), torch.ones(3, 7, 7)]
    assert size(images) == 4
    assert without(images, [0])[0].shape == (3, 5, 5)
    pairs = [(torch.zeros(2), 0), (torch.ones(2), 1)]
    assert only(pairs, [1])[0][1] == 1
    assert size((torch.zeros(5, 2), torch.zeros(5))) == 5


def test_a_batch_holds_another_ones_samples_for_the_length_of_a_block():
    columns, pairs = {"x": torch.arange(6.0).reshape(3, 2)}, [torch.zeros(2), torch.ones(3)]
    for batch in (columns, pairs):
        with exchanged(batch, without(batch, [0])):
            assert size(batch) == size(without(batch, []))
        assert len(batch) == (1 if batch is columns else 2)
    assert columns["x"].tolist() == [[0, 1], [2, 3], [4, 5]]
