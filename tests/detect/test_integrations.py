"""The guard inside the loops of transformers, Lightning and accelerate: tiny random models, nothing downloaded."""

import warnings

import pytest
import torch
from torch import nn

from nanlab import NonFiniteError, Scene, guard, integrations, watch

pytestmark = pytest.mark.filterwarnings("ignore")  # the frameworks' own
transformers = pytest.importorskip("transformers")
lightning = pytest.importorskip("lightning.pytorch")
accelerate = pytest.importorskip("accelerate")


class Share(nn.Module):
    """Its inputs' shares of their sum, and a linear layer on them."""

    def __init__(self):
        super().__init__()
        self.lin, self.drop = nn.Linear(5, 1), nn.Dropout(0.5)

    def forward(self, x, y=None):
        out = self.lin(self.drop(x / x.sum(1, keepdim=True))).squeeze(1)  # <- here
        return {"loss": (out - y).pow(2).mean(), "logits": out}


def rows(bad: int | None) -> list[dict]:
    torch.manual_seed(0)
    made = [{"x": torch.rand(5) + 0.1, "y": torch.rand(())} for _ in range(24)]
    if bad is not None:
        made[bad]["x"].zero_()
    return made


def trainer(tmp_path, bad, callbacks, accumulate=1):
    torch.manual_seed(0)
    args = transformers.TrainingArguments(
        output_dir=str(tmp_path), per_device_train_batch_size=2, num_train_epochs=1, use_cpu=True, report_to=[],
        save_strategy="no", logging_steps=1, disable_tqdm=True, gradient_accumulation_steps=accumulate,
    )  # fmt: skip
    model = Share()
    return model, transformers.Trainer(model=model, args=args, train_dataset=rows(bad), callbacks=callbacks)


def finite(model: nn.Module) -> bool:
    return all(bool(torch.isfinite(p).all()) for p in model.parameters())


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_trainer_of_transformers_stops_before_the_step_with_line_scene_and_confirmation(tmp_path, marked, accumulate):
    model, run = trainer(tmp_path, 13, [integrations.TransformersGuard(confirm=True)], accumulate)
    with pytest.raises(NonFiniteError) as caught:
        run.train()
    report = caught.value.report
    assert (report.line, report.form, report.confirmed_by) == (marked(Share.forward), "0/0", ["operand patched"])
    assert report.step == run.state.global_step - 1
    assert isinstance(caught.value.scene, Scene)
    assert finite(model)


def test_a_healthy_trainer_ends_with_the_same_weights_and_its_own_step(tmp_path):
    plain, run = trainer(tmp_path, None, [])
    run.train()
    guarded, run = trainer(tmp_path, None, [integrations.TransformersGuard()])
    run.train()
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), guarded.parameters(), strict=True))
    assert "training_step" not in vars(run)


def test_what_watch_cannot_see_in_a_framework_comes_with_advice_for_that_framework(tmp_path):
    class After(transformers.Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            loss = model(**inputs)["loss"]
            return loss / (loss - loss.detach())

    model, run = trainer(tmp_path, None, [])
    run = After(model=model, args=run.args, train_dataset=rows(None))
    with watch(model), pytest.raises(NonFiniteError) as caught:
        run.train()
    assert "TransformersGuard" in str(caught.value.report.notes)


class Lit(lightning.LightningModule):
    def __init__(self, manual=False):
        super().__init__()
        self.net, self.automatic_optimization, self.logged = Share(), not manual, 0

    def training_step(self, batch, index):
        loss = self.net(**batch)["loss"]
        self.log("loss", loss)
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)


def fit(module, bad, callbacks, **options):
    loader = torch.utils.data.DataLoader(rows(bad), batch_size=2)
    torch.manual_seed(0)
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    run = lightning.Trainer(max_epochs=1, accelerator="cpu", callbacks=callbacks, **quiet, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run.fit(module, loader)


@pytest.mark.parametrize(("manual", "options"), [(False, {}), (True, {}), (False, {"accumulate_grad_batches": 3})])
def test_a_trainer_of_lightning_stops_before_the_step_with_line_scene_and_confirmation(marked, manual, options):
    torch.manual_seed(0)
    module = Lit(manual)
    with pytest.raises(NonFiniteError) as caught:
        fit(module, 13, [integrations.LightningGuard(confirm=True)], **options)
    report = caught.value.report
    assert (report.line, report.form, report.confirmed_by) == (marked(Share.forward), "0/0", ["operand patched"])
    assert report.step == (6 if not options else 2)
    assert finite(module)


def test_a_healthy_module_of_lightning_ends_with_the_same_weights():
    torch.manual_seed(0)
    plain = Lit()
    fit(plain, None, [])
    torch.manual_seed(0)
    guarded = Lit()
    fit(guarded, None, [integrations.LightningGuard()])
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), guarded.parameters(), strict=True))


def test_a_loop_of_accelerate_takes_the_guard_around_its_loader(marked):
    torch.manual_seed(0)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    loader = torch.utils.data.DataLoader(rows(13), batch_size=2)
    model, optimizer, loader = accelerator.prepare(Share(), torch.optim.AdamW(Share().parameters()), loader)
    optimizer = accelerator.prepare(torch.optim.AdamW(model.parameters()))
    with pytest.raises(NonFiniteError) as caught:
        for batch in guard(loader, model, optimizer):
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch)["loss"])
                optimizer.step()
                optimizer.zero_grad()
    assert caught.value.report.line == marked(Share.forward)


def test_an_unknown_integration_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuch"):
        integrations.NoSuch  # noqa: B018
