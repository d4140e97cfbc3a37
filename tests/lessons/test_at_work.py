"""The "At work" boxes of the developer lessons, run as they are printed against PyTorch, transformers and Lightning.

Each fenced block begins with a comment that names its library. What a block leaves to the reader (model, loader, data)
is given here, tiny and random; a test then holds that the block does what its lesson says.
"""

import math
import re
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.nn.utils import clip_grad_norm_, get_total_norm
from torch.utils.data import DataLoader

from nanlab.authoring import files

transformers = pytest.importorskip("transformers")
lightning = pytest.importorskip("lightning")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]  # the libraries' own warnings

LESSONS = sorted((Path(__file__).resolve().parents[2] / "notebooks" / "developer").glob("*.ipynb"))
BLOCK = re.compile(r"```python\n# (PyTorch|transformers|Lightning)\b[^\n]*\n(.*?)```", re.S)


def blocks(path: Path) -> dict[str, str]:
    """The blocks of the box in the lesson at `path`, by library."""
    text = "\n".join(cell.source for cell in files.read(path).cells if cell.id == "at-work")
    return {library: source for library, source in BLOCK.findall(text)}


BOXES = {path.stem[:2]: blocks(path) for path in LESSONS if "checkpoint" not in path.stem}


class Net(nn.Module):
    """Four features to three logits or one number, as the Trainer calls it; `spoil` is applied to the loss."""

    def __init__(self, spoil=lambda loss, hidden: loss):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.spoil = nn.Linear(4, 1), spoil

    def forward(self, x, labels=None):
        hidden = self.linear(x)
        if labels is None:
            return hidden
        return {"loss": self.spoil(mse_loss(hidden.float(), labels), hidden), "logits": hidden}


class Module(lightning.LightningModule):
    """The same net for Lightning."""

    def __init__(self, spoil=lambda loss, hidden: loss):
        super().__init__()
        self.net = Net(spoil)

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        return self.net(*batch)["loss"]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def batches(count=4):
    torch.manual_seed(1)
    return [(torch.rand(2, 4), torch.rand(2, 1)) for _ in range(count)]


def loader():
    return DataLoader(batches(), batch_size=None)


def given(library: str, folder: Path, spoil=lambda loss, hidden: loss) -> dict:
    """The names that a block of `library` finds."""
    names = {"torch": torch, "nn": nn, "math": math, "clip_grad_norm_": clip_grad_norm_}
    names |= {"get_total_norm": get_total_norm, "cross_entropy": cross_entropy, "loader": loader()}
    if library == "PyTorch":
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def loss_of(output, target):
            return spoil(mse_loss(output.float(), target), output)

        return names | {"model": model, "optimizer": optimizer, "loss_of": loss_of}
    if library == "transformers":
        arguments = partial(
            transformers.TrainingArguments, use_cpu=True, max_steps=4, report_to=[], save_strategy="no",
            disable_tqdm=True, per_device_train_batch_size=2, logging_steps=1, learning_rate=0.1,
        )  # fmt: skip
        data = [{"x": x[0], "labels": y[0]} for x, y in batches(8)]
        names |= {"TrainingArguments": arguments, "Trainer": transformers.Trainer, "data": data}
        return names | {"model": Net(spoil), "TrainerCallback": transformers.TrainerCallback}
    trainer = partial(
        lightning.Trainer, max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder,
    )  # fmt: skip
    return names | {"Trainer": trainer, "Model": Module, "model": Module(spoil)}


def run(lesson: str, library: str, folder: Path, spoil=lambda loss, hidden: loss) -> dict:
    """Run the block; the names that it leaves."""
    names = given(library, folder, spoil)
    exec(compile(BOXES[lesson][library], f"lesson {lesson}, {library}", "exec"), names)
    return names


def explode(loss, hidden):
    return loss * 1e6


def spoiled(loss, hidden):
    return loss * math.nan


def finite(model: nn.Module) -> bool:
    return all(bool(p.isfinite().all()) for p in model.parameters())


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    torch.autograd.set_detect_anomaly(False)


@pytest.mark.parametrize("lesson", BOXES)
def test_every_lesson_has_a_box_with_all_three(lesson):
    assert set(BOXES[lesson]) == {"PyTorch", "transformers", "Lightning"}


def test_01_the_loop_stops_with_good_weights(tmp_path):
    names = given("PyTorch", tmp_path, spoiled)
    with pytest.raises(FloatingPointError, match="step 0: loss nan"):
        exec(BOXES["01"]["PyTorch"], names)
    assert finite(names["model"])


def test_01_the_trainer_stops_at_the_first_record_after_the_step(tmp_path):
    names = run("01", "transformers", tmp_path, spoiled)
    names["trainer"].train()
    assert names["trainer"].state.global_step == 1
    assert not finite(names["model"])


def test_01_without_the_argument_the_trainer_prints_zero_and_goes_on(tmp_path):
    names = given("transformers", tmp_path, spoiled)
    trainer = names["Trainer"](names["model"], names["TrainingArguments"]("out"), train_dataset=names["data"])
    trainer.train()
    assert trainer.state.global_step == 4
    assert trainer.state.log_history[0]["loss"] == 0.0


def test_01_lightning_raises_before_the_step(tmp_path):
    names = run("01", "Lightning", tmp_path)
    model = names["Guarded"](spoiled)
    with pytest.raises(FloatingPointError):
        names["Trainer"]().fit(model, names["loader"])
    assert finite(model)


def test_02_the_loop_warms_up(tmp_path):
    names = run("02", "PyTorch", tmp_path)
    assert names["warmup"].get_last_lr()[0] == pytest.approx(3e-4 * (0.01 + 0.99 * 4 / 500))


def test_02_the_trainer_warms_up_adamw(tmp_path):
    names = run("02", "transformers", tmp_path)
    names["trainer"].train()
    assert "AdamW" in type(names["trainer"].optimizer.optimizer).__name__
    assert names["trainer"].state.log_history[1]["learning_rate"] < 3e-4 / 100


def test_02_lightning_moves_the_schedule_at_each_step(tmp_path):
    names = run("02", "Lightning", tmp_path)
    trainer = names["Trainer"]()
    trainer.fit(names["Warmed"](), names["loader"])
    assert trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(3e-4 * (0.01 + 0.99 * 4 / 500))


def root_of_zero(loss, hidden):
    return loss + (hidden.sum() * 0).abs().sqrt() * 0


@pytest.mark.parametrize("library", ["PyTorch", "transformers", "Lightning"])
def test_03_anomaly_mode_stops_at_a_nan_gradient(library, tmp_path):
    with pytest.raises(RuntimeError, match="returned nan values"):
        run("03", library, tmp_path, root_of_zero)


@pytest.mark.parametrize("library", ["PyTorch", "transformers", "Lightning"])
def test_04_the_layers_run_in_half_precision(library, tmp_path):
    seen = set()

    def note(loss, hidden):
        seen.add(hidden.dtype)
        return loss

    names = run("04", library, tmp_path, note)
    if library == "PyTorch":  # its loss is handed a float32 copy
        seen = {names["output"].dtype}
    assert seen <= {torch.float16, torch.bfloat16} and seen


def test_04_the_loop_clips_true_gradients(tmp_path):
    names = run("04", "PyTorch", tmp_path)
    assert names["scaler"].get_scale() >= 4096
    assert names["norm"] < 100


@pytest.mark.parametrize("library", ["PyTorch", "transformers", "Lightning"])
def test_05_raw_logits_of_a_hopeless_row_have_a_finite_loss(library, tmp_path):
    names = run("05", library, tmp_path)
    logits, labels = torch.tensor([[0.0, 200.0, 0.0]]).half(), torch.tensor([0])
    assert names["loss_of_logits"](logits, labels).item() == 200
    assert names["loss_of_logits"](logits, torch.tensor([-100])).item() == 0


@pytest.mark.parametrize("library", ["PyTorch", "transformers", "Lightning"])
def test_06_no_step_is_longer_than_the_limit(library, tmp_path):
    names = run("06", library, tmp_path, explode)
    moved = [after - before for after, before in zip(parameters(names["model"]), Net().parameters(), strict=True)]
    steps, lr = 4, 0.1
    assert 0 < get_total_norm(moved).item() <= steps * lr * 1.0 * 1.01


def parameters(model):
    return [p.detach() for p in model.parameters()]


def test_06_the_trainer_logs_the_norm_from_before_clipping(tmp_path):
    names = run("06", "transformers", tmp_path, explode)
    assert names["trainer"].state.log_history[0]["grad_norm"] > 1000


def test_11_each_prints_the_fields(tmp_path, capsys):
    run("11", "PyTorch", tmp_path)
    line = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"step 0  loss \S+  grad_norm \S+  n_targets 2  lr 0.1", line)


def test_11_the_trainer_logs_a_nan_as_nan(tmp_path):
    names = run("11", "transformers", tmp_path, spoiled)
    assert math.isnan(names["trainer"].state.log_history[0]["loss"])


def test_11_lightning_logs_the_norm(tmp_path):
    names = run("11", "Lightning", tmp_path)
    trainer = names["Trainer"](log_every_n_steps=1)
    trainer.fit(names["Logged"](), names["loader"])
    assert trainer.callback_metrics["grad_norm"] > 0
