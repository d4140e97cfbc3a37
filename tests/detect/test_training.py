"""What a run holds is listed once, under one set of names, and comes back as it was."""

import torch
from torch import nn

from nanlab import hunt
from nanlab.detect.state.checkpoint import Checkpoint, keep
from nanlab.detect.state.training import TrainingState, as_list


class Wrapper:
    """An optimizer in a wrapper, as accelerate hands it out."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self):
        self.optimizer.step()


def test_a_wrapped_optimizer_is_the_one_that_it_wraps_for_hunt_too():
    model = nn.Linear(3, 1)
    wrapped = Wrapper(torch.optim.SGD(model.parameters(), lr=0.1))
    assert as_list(wrapped) == as_list([wrapped]) == [wrapped.optimizer]

    def step(scale: float = 1.0):
        (model(torch.ones(2, 3)).mean() * scale).log().backward()
        wrapped.step()

    with torch.no_grad():
        model.bias.fill_(9.0)
    assert hunt(step, model, wrapped).verdict == "finite"
    assert hunt(lambda: step(0.0), model, wrapped, confirm=True).form == "log(0)"


def test_every_tensor_has_one_name_whatever_wraps_the_model():
    model, extra = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.LBFGS([*model.parameters(), extra])

    def closure():
        optimizer.zero_grad()
        loss = (model(torch.randn(4, 2)) * extra).pow(2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    run = TrainingState(nn.DataParallel(model), optimizer, {"x": torch.ones(1)})
    names = {name for _, name, _ in run.everything()}
    assert {"0.weight", "1.running_mean", "parameter 0", "batch['x']"} <= names
    assert {"d of 0.weight", "old_dirs[0] of 0.weight"} <= names
    assert run.name(model[0].weight.detach()) == ("parameter", "0.weight")
    assert run.name(extra.grad) == ("grad", "the gradient of parameter 0")


def test_what_shares_a_tensors_memory_comes_back_with_it():
    t = torch.arange(4.0)
    view, kept = t[1:], Checkpoint([t], [])
    t.zero_()
    kept.restore()
    assert view.tolist() == [1.0, 2.0, 3.0]


def test_a_tensor_that_cannot_be_written_to_or_has_changed_its_form_comes_back_too():
    spread, narrow = torch.ones(1).expand(3), torch.ones(2)
    put_back = keep(None, batch=[spread, narrow])
    narrow.data = torch.zeros(5, dtype=torch.float64)
    spread.data = torch.zeros(3)
    put_back()
    assert spread.tolist() == [1.0, 1.0, 1.0]
    assert narrow.dtype is torch.float32 and narrow.tolist() == [1.0, 1.0]


def test_settings_and_state_of_an_optimizer_come_back_as_often_as_asked():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))
    kept = Checkpoint(model.parameters(), [optimizer])
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"].fill_(5.0)
        kept.restore()
        assert not optimizer.state and optimizer.param_groups[0]["lr"].item() == torch.tensor(0.1).item()
