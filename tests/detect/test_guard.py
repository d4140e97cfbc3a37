"""The guard in plain loops: it stops before the weights are spoilt, explains, and leaves no trace."""

import inspect
import linecache
import random

import numpy
import pytest
import torch
from torch import nn

from nanlab import NonFiniteError, Scene, guard


def here(mark: str) -> int:
    """The line of the calling test that ends in the comment ``# mark``."""
    frame = inspect.currentframe().f_back
    lines, first = inspect.getsourcelines(frame.f_code)
    return first + next(i for i, line in enumerate(lines) if line.rstrip().endswith(f"# {mark}"))


def line_of(report) -> str:
    return linecache.getline(report.file, report.line).rstrip()


def small() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def batches(count: int, bad: int | None = None) -> list[torch.Tensor]:
    torch.manual_seed(1)
    made = [torch.randn(6, 3) for _ in range(count)]
    if bad is not None:
        made[bad][2] = 0.0
    return made


def normalised(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x / x.norm(dim=1, keepdim=True)).pow(2).mean()  # 0/0


def state_of(model: nn.Module, *optimizers: torch.optim.Optimizer) -> list:
    tensors = [t.detach().clone() for t in model.state_dict().values()]
    for one in optimizers:
        tensors += [v.clone() for s in one.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    return tensors


def same(a: list, b: list) -> bool:
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def attached(optimizer: torch.optim.Optimizer) -> bool:
    heard = torch.autograd.backward.__module__ == "nanlab.detect.patching"
    return bool(optimizer._optimizer_step_pre_hooks) or heard


def test_a_bad_loss_is_traced_to_its_line_and_weights_state_buffers_and_randomness_are_those_before_the_step():
    model, optimizer = small()
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(8, bad=5), model, optimizer):
            before, generator = state_of(model, optimizer), torch.get_rng_state()
            optimizer.zero_grad()
            loss = normalised(model, x)
            loss.backward()
            optimizer.step()
    report = caught.value.report
    assert (report.step, report.form, report.element, report.where) == (5, "0/0", [2, 0], "forward")
    assert report.file == __file__
    assert line_of(report).endswith("# 0/0")
    assert same(before, state_of(model, optimizer))
    assert torch.equal(generator, torch.get_rng_state())
    assert all(p.grad is None for p in model.parameters())
    assert not attached(optimizer)


def test_training_goes_on_from_there_once_the_cause_is_removed():
    model, optimizer = small()
    data = batches(8, bad=5)
    with pytest.raises(NonFiniteError):
        for x in guard(data, model, optimizer):
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()
    data[5][2] = 1.0
    for x in guard(data[5:], model, optimizer):
        optimizer.zero_grad()
        normalised(model, x).backward()
        optimizer.step()
    resumed = state_of(model, optimizer)
    model, optimizer = small()
    torch.manual_seed(1)  # as batches() left the generator
    [torch.randn(6, 3) for _ in range(8)]
    for x in data:
        optimizer.zero_grad()
        normalised(model, x).backward()
        optimizer.step()
    assert same(resumed, state_of(model, optimizer))


def test_a_bad_gradient_under_a_finite_loss_is_seen_before_clipping_spreads_it():
    model = nn.Linear(3, 3, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(6, bad=4), model, optimizer):
            before = state_of(model)
            optimizer.zero_grad()
            loss = model(x).pow(2).sum(dim=1).sqrt().mean()  # root
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    assert (caught.value.report.where, caught.value.report.form) == ("gradient", "deriv_of_sqrt_at_0")
    assert caught.value.report.line == here("root")
    assert same(before, state_of(model))


def test_the_replay_draws_the_same_numbers_from_torch_python_and_numpy():
    model, optimizer = small()
    drawn = []
    with pytest.raises(NonFiniteError):
        for x in guard(batches(4, bad=3), model, optimizer):
            drawn.append((torch.rand(()).item(), random.random(), random.gauss(0, 1), numpy.random.randn()))
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()
    assert len(drawn) == 5
    assert drawn[3] == drawn[4]
    assert len(set(drawn[:4])) == 4


def test_a_micro_batch_of_an_accumulation_is_found_by_itself():
    model, optimizer = small()
    with pytest.raises(NonFiniteError) as caught:
        for number, x in enumerate(guard(batches(8, bad=5), model, optimizer)):
            (normalised(model, x) / 4).backward()
            if number % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
    assert (caught.value.report.step, caught.value.report.form) == (1, "0/0")


def test_gradients_that_overflow_only_in_their_sum_are_replayed_with_all_micro_batches():
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with pytest.raises(NonFiniteError) as caught:
        for number, x in enumerate(guard([torch.full((1, 1), 3e38)] * 8, model, optimizer)):
            (model(x) * 0.4).sum().backward()  # the third micro-batch is the last that fits
            if number % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
    report = caught.value.report
    assert (report.verdict, report.where, report.form) == ("non-finite", "gradient", "overflow")
    assert any("3 micro-batches" in note for note in report.notes)
    assert len(caught.value.scene.batches) == 3


def test_of_two_optimizers_the_one_that_stepped_before_the_failure_stands_still_in_the_replay():
    torch.manual_seed(0)
    critic, maker = nn.Linear(3, 1), nn.Linear(3, 3)
    first, second = torch.optim.Adam(critic.parameters()), torch.optim.Adam(maker.parameters())
    kept = {}
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(5, bad=3), nn.ModuleList([critic, maker]), [first, second]):
            kept["maker"] = state_of(maker, second)
            first.zero_grad()
            critic(x).mean().backward()
            first.step()
            kept["critic"] = state_of(critic, first)
            second.zero_grad()
            made = maker(x)
            (critic(made) / x.norm(dim=1, keepdim=True)).mean().backward()  # x/0
            second.step()
    assert caught.value.report.form == "x/0"
    assert caught.value.report.line == here("x/0")
    assert caught.value.report.step == 3
    assert same(kept["maker"], state_of(maker, second))
    assert same(kept["critic"], state_of(critic, first))


def test_several_steps_in_one_pass_fail_at_the_one_that_failed():
    model, optimizer = small()
    losses = []
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(4), model, optimizer):
            for turn in range(3):
                optimizer.zero_grad()
                scale = 0.0 if (len(losses) % 12, turn) == (7, 1) else 1.0
                loss = model(x).pow(2).mean() / torch.tensor(scale)
                if len(losses) < 8:
                    losses.append(loss.item())
                loss.backward()
                optimizer.step()
    assert caught.value.report.step == 7


def test_lbfgs_is_judged_by_its_first_evaluation():
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(4, bad=2), model, optimizer):
            before = state_of(model)
            history = {k: v for s in optimizer.state.values() for k, v in s.items() if isinstance(v, int)}

            def closure(x=x):
                optimizer.zero_grad()
                loss = normalised(model, x)
                loss.backward()
                return loss

            optimizer.step(closure)
    assert caught.value.report.form == "0/0"
    assert same(before, state_of(model))
    assert history == {k: v for s in optimizer.state.values() for k, v in s.items() if isinstance(v, int)}


def test_a_step_of_lbfgs_that_spoils_the_weights_is_taken_back():
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=4.0, max_iter=8)  # from 1 past 0
    with pytest.raises(NonFiniteError) as caught:
        for x in guard([torch.ones(1, 1)] * 40, model, optimizer):
            before = state_of(model)

            def closure(x=x):
                optimizer.zero_grad()
                loss = model(x).sqrt().sum()
                loss.backward()
                return loss

            optimizer.step(closure)
    assert same(before, state_of(model))
    assert (caught.value.report.verdict, caught.value.report.form) == ("non-finite", "sqrt(<0)")


def scaler_loop(model, optimizer, data, loss_of, **settings):
    scaler = torch.amp.GradScaler("cpu", **settings)
    for x in guard(data, model, optimizer):
        optimizer.zero_grad()
        scaler.scale(loss_of(x)).backward()
        scaler.step(optimizer)
        scaler.update()
    return scaler


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_the_scaler_skips_raises_no_alarm(fused):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=fused)
    scaler = scaler_loop(model, optimizer, batches(6), lambda x: model(x).mean() * 1e3, init_scale=2.0**125)
    assert scaler.get_scale() < 2.0**125
    assert all(p.isfinite().all() for p in model.parameters())


def test_a_loss_that_is_not_finite_before_scaling_is_no_matter_of_the_scale():
    model, optimizer = small()
    with pytest.raises(NonFiniteError) as caught:
        scaler_loop(model, optimizer, batches(6, bad=4), lambda x: normalised(model, x))
    assert (caught.value.report.step, caught.value.report.form) == (4, "0/0")


def test_a_scale_that_collapses_is_warned_of_and_then_reported():
    model = nn.Linear(3, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = [torch.zeros(2, 3)] * 80
    with pytest.warns(UserWarning, match="loss scale fell"), pytest.raises(NonFiniteError) as caught:
        scaler_loop(model, optimizer, data, lambda x: model(x).pow(2).sum().sqrt(), init_scale=8.0)
    assert caught.value.report.where == "gradient"
    assert any("loss scale fell" in note for note in caught.value.report.notes)


def test_autocast_and_non_reentrant_checkpointing_are_replayed():
    from torch.utils.checkpoint import checkpoint

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 8), nn.Linear(8, 1)

        def inner(self, x):
            return self.a(x / x.norm(dim=1, keepdim=True))  # inside

        def forward(self, x):
            return self.b(checkpoint(self.inner, x, use_reentrant=False))

    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(4, bad=2), model, optimizer):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(x).float().pow(2).mean()
            loss.backward()
            optimizer.step()
    assert (caught.value.report.form, caught.value.report.step) == ("0/0", 2)
    assert line_of(caught.value.report).endswith("# inside")


def test_a_compiled_model_is_replayed_eagerly():
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 1)

        def forward(self, x):
            return self.a(x / x.norm(dim=1, keepdim=True))  # eager

    model = torch.compile(Net(), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(4, bad=2), model, optimizer):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
    assert line_of(caught.value.report).endswith("# eager")


def test_what_goes_bad_only_when_compiled_is_a_verdict():
    def broken(graph, inputs):
        return lambda *args: tuple(out * float("nan") for out in graph(*args))

    model = nn.Linear(3, 1)
    compiled = torch.compile(model, backend=broken)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(2), compiled, optimizer):
            optimizer.zero_grad()
            compiled(x).mean().backward()
            optimizer.step()
    assert caught.value.report.verdict == "only-when-compiled"
    torch._dynamo.reset()


def test_a_step_that_does_not_fail_again_is_not_reproduced_and_says_what_was_not_captured():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    own = iter([1.0, 0.0, 1.0, 1.0])  # what a loop keeps to itself no replay can put back
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(3), model, optimizer):
            optimizer.zero_grad()
            (model(x).mean() / torch.tensor(next(own))).backward()
            optimizer.step()
    report = caught.value.report
    assert (report.verdict, report.step) == ("not-reproduced", 1)
    assert "torch.Generator" in str(report)


def test_a_batch_that_the_body_changes_in_place_is_named_as_not_captured():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard([torch.ones(2, 3)], model, optimizer):
            x.sub_(1)
            (model(x) / x.sum()).mean().backward()
            optimizer.step()
    assert caught.value.report.verdict == "not-reproduced"
    assert "in place" in str(caught.value.report)


@pytest.mark.parametrize("how", ["break", "exception"])
def test_leaving_the_body_detaches_the_guard(how):
    model, optimizer = small()
    plain = torch.autograd.backward
    try:
        for x in guard(batches(3), model, optimizer):
            assert attached(optimizer)
            normalised(model, x).backward()
            if how == "break":
                break
            raise KeyError("the body's own")
    except KeyError:
        pass
    assert not attached(optimizer)
    assert torch.autograd.backward is plain


def test_a_guard_inside_a_guard_reports_its_own_model():
    torch.manual_seed(0)
    outer, inner = nn.Linear(3, 1), nn.Linear(3, 1)
    one, two = (torch.optim.SGD(m.parameters(), lr=0.01) for m in (outer, inner))
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(3), outer, one):
            one.zero_grad()
            outer(x).mean().backward()
            one.step()
            for z in guard(batches(3, bad=1), inner, two):
                two.zero_grad()
                (inner(z) / z.norm(dim=1, keepdim=True)).mean().backward()  # inner
                two.step()
    assert caught.value.report.line == here("inner")
    assert not attached(one)
    assert not attached(two)


def test_a_guard_made_anew_every_epoch_goes_on_counting():
    model, optimizer = small()
    with pytest.raises(NonFiniteError) as caught:
        for bad in (None, 2):
            for x in guard(batches(4, bad=bad), model, optimizer):
                optimizer.zero_grad()
                normalised(model, x).backward()
                optimizer.step()
    assert caught.value.report.step == 6
    assert len(caught.value.report.trajectory) == 6


def test_the_scene_is_saved_where_that_was_asked_for_and_replays(tmp_path):
    model, optimizer = small()
    path = tmp_path / "scene.pt"
    with pytest.raises(NonFiniteError, match="scene is saved"):
        for x in guard(batches(6, bad=3), model, optimizer, on_failure="save", scene=path):
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()
    scene = Scene.load(path)
    assert scene.step == 3
    assert len(scene.trajectory) == 3
    again = scene.replay(lambda x: normalised(model, x), model, optimizer)
    assert again.verdict == "reproduced"
    assert again.report.form == "0/0"


def test_a_scene_that_cannot_be_saved_does_not_hide_the_report(tmp_path):
    model, optimizer = small()
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(3, bad=1), model, optimizer, on_failure="save", scene=tmp_path / "none" / "scene.pt"):
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()
    assert caught.value.report.form == "0/0"
    assert any("does not exist" in note for note in caught.value.report.notes)


def test_skipped_steps_are_counted_reported_and_change_nothing():
    model, optimizer = small()
    data = batches(6, bad=2)
    data[4][1] = 0.0
    guarded = guard(data, model, optimizer, on_failure="skip")
    with pytest.warns(UserWarning, match=r"skipped 2 steps .* step 2 \(loss\), step 3 \(loss\)"):
        for number, x in enumerate(guarded):
            if number == 2:
                before = state_of(model, optimizer)
            if number == 3:
                assert same(before, state_of(model, optimizer))
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()
    assert [s.step for s in guarded.skipped] == [2, 3]


def test_skipping_has_a_limit():
    model, optimizer = small()
    data = batches(6)
    for x in data:
        x[0] = 0.0
    guarded = guard(data, model, optimizer, on_failure="skip", skip_limit=2)
    with pytest.raises(NonFiniteError, match="2 failing steps were skipped"):
        for x in guarded:
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()


def test_an_optimizer_that_makes_the_nan_is_reported_at_once_and_the_weights_declared_spoilt():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), eps=0.0)
    steps = 0
    with pytest.raises(NonFiniteError, match="weights are spoilt") as caught:
        for x in guard(batches(3), model, optimizer):
            optimizer.zero_grad()
            model(x)[:, 0].pow(2).mean().backward()
            optimizer.step()  # adam
            steps += 1
    report = caught.value.report
    assert steps == 0
    assert (report.step, report.where, report.form, report.element) == (0, "weights", "0/0", [1, 0])
    assert report.line == here("adam")


def test_an_update_that_overflows_is_reported_at_once():
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e38)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard([torch.ones(1, 1)] * 3, model, optimizer):
            optimizer.zero_grad()
            (model(x) * 100).sum().backward()
            optimizer.step()
    assert (caught.value.report.step, caught.value.report.where) == (0, "weights")


def test_a_second_moment_that_overflows_is_reported_though_loss_and_weights_stay_finite():
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with pytest.raises(NonFiniteError) as caught:
        for number, x in enumerate(guard([torch.ones(1, 1)] * 6, model, optimizer)):
            optimizer.zero_grad()
            (model(x) * (1e21 if number == 3 else 1.0)).sum().backward()
            optimizer.step()
    assert (caught.value.report.step, caught.value.report.where) == (3, "optimizer_state")
    assert model.weight.isfinite().all()


def test_weights_and_optimizer_state_are_looked_at_before_the_first_step():
    table = nn.Embedding(6, 4)
    with torch.no_grad():
        table.weight[5] = float("nan")
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
    with pytest.raises(NonFiniteError, match="before the first step") as caught:
        for ids in guard([torch.tensor([0, 1])] * 3, table, optimizer):
            table(ids).sum().backward()  # reads
            optimizer.step()
    report = caught.value.report
    assert (report.step, report.where, report.element, report.line) == (0, "weights", [5, 0], here("reads"))

    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    optimizer.state[model.weight]["exp_avg_sq"][0, 1] = float("inf")
    with pytest.raises(NonFiniteError, match="exp_avg_sq of weight") as caught:
        for x in guard(batches(2), model, optimizer):
            model(x).sum().backward()
    assert caught.value.report.where == "optimizer_state"


def test_the_run_before_the_failure_is_judged_flat_or_climbing():
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.6)
    with pytest.raises(NonFiniteError, match="climbing: gradient norm rose") as caught:
        for x in guard([torch.full((1, 1), 3.0)] * 200, model, optimizer):
            optimizer.zero_grad()
            model(x).pow(2).sum().backward()
            optimizer.step()
    assert len(caught.value.report.trajectory) <= 64
    model, optimizer = small()
    with pytest.raises(NonFiniteError, match="was flat"):
        for x in guard(batches(20, bad=15), model, optimizer):
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()


def test_a_rolling_snapshot_brings_back_the_last_healthy_step():
    model, optimizer = small()
    guarded, seen = guard(batches(12, bad=9), model, optimizer, snapshot_every=3), {}
    with pytest.raises(NonFiniteError):
        for x in guarded:
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()
            seen[len(seen) + 1] = state_of(model, optimizer)
    step = guarded.rollback()
    assert step == 7
    assert same(seen[step], state_of(model, optimizer))
    assert guarded.rollback() == 4
    with pytest.raises(RuntimeError, match="no snapshot"):
        guarded.rollback()
    with pytest.raises(RuntimeError, match="snapshot_every"):
        guard([], model, optimizer).rollback()


def test_loops_without_backward_show_their_loss_and_loops_that_use_autograd_grad_are_seen():
    model = nn.Linear(3, 1)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(4, bad=1), model):
            guard.loss(normalised(model, x))
    assert (caught.value.report.form, caught.value.report.step) == ("0/0", 1)

    model = nn.Linear(3, 1)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(4, bad=2), model):
            grads = torch.autograd.grad(normalised(model, x), list(model.parameters()))
            with torch.no_grad():
                for p, grad in zip(model.parameters(), grads, strict=True):
                    p -= 0.01 * grad
    assert caught.value.report.form == "0/0"


def test_a_loop_that_updates_by_hand_is_stopped_when_its_weights_are_spoilt():
    model = nn.Linear(1, 1, bias=False)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard([torch.ones(1, 1)] * 4, model):
            model.zero_grad()
            model(x).sum().backward()
            with torch.no_grad():
                model.weight -= 3e38 * 2 * model.weight.grad.double().float()
    assert caught.value.report.where == "weights"


def test_a_guard_that_saw_nothing_says_so():
    with pytest.warns(UserWarning, match="looked at nothing"):
        for _ in guard(batches(2), nn.Linear(3, 1)):
            pass


def test_learning_rates_that_a_scheduler_changed_in_the_failing_pass_are_put_back():
    model, optimizer = small()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    with pytest.raises(NonFiniteError):
        for x in guard(batches(4, bad=2), model, optimizer):
            rate = optimizer.param_groups[0]["lr"]
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()
            schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01 * 0.5**2)
    assert rate <= 0.01 * 0.5**2


def test_masks_of_minus_infinity_raise_no_alarm():
    torch.manual_seed(0)
    model = nn.Linear(3, 4)
    model.register_buffer("mask", torch.tensor([0.0, 0.0, 0.0, float("-inf")]))
    optimizer = torch.optim.Adam(model.parameters())
    for x in guard(batches(210), model, optimizer):
        optimizer.zero_grad()
        torch.log_softmax(model(x) + model.mask, dim=1)[:, 0].mean().neg().backward()
        optimizer.step()


def test_an_unknown_reaction_to_failures_is_refused():
    with pytest.raises(ValueError, match="on_failure is 'ignore'"):
        guard([], on_failure="ignore")


def test_the_periodic_audit_finds_what_no_step_shows():
    model, optimizer = small()
    model.register_buffer("average", torch.zeros(3))
    with pytest.raises(NonFiniteError, match="Found by the audit") as caught:
        for number, x in enumerate(guard(batches(30), model, optimizer, audit_every=10)):
            if number == 12:
                model.average[1] = float("nan")
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()
    assert caught.value.report.step == 19
    assert "buffer average" in str(caught.value.report)


def test_the_origin_is_confirmed_by_mending_its_operands_where_that_was_asked_for():
    model, optimizer = small()
    passes = 0
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(6, bad=3), model, optimizer, confirm=True):
            passes += 1
            before = state_of(model, optimizer)
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()
    assert caught.value.report.confirmed_by == ["operand patched"]
    assert 6 <= passes <= 8
    assert same(before, state_of(model, optimizer))


def test_a_weight_that_was_mended_to_confirm_the_origin_is_put_back():
    class TwoOrigins(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.z = nn.Parameter(torch.tensor([0.0, 1.0])), nn.Parameter(torch.zeros(2))

        def forward(self, x):
            logarithm = self.w.log()
            return (logarithm + self.z / (self.z * 1) + x).sum()

    model = TwoOrigins()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before, x = state_of(model, optimizer), torch.ones(2)
    with pytest.raises(NonFiniteError):
        for batch in guard([x], model, optimizer, confirm=True):
            optimizer.zero_grad()
            model(batch).backward()
            optimizer.step()
    assert same(before, state_of(model, optimizer)) and torch.equal(x, torch.ones(2))


def test_a_long_run_of_a_tiny_model_still_has_every_gradient_looked_at_and_a_norm_where_the_loss_jumps():
    model = nn.Linear(3, 3, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    guarded = guard(batches(100, bad=93), model, optimizer)
    with pytest.raises(NonFiniteError) as caught:
        for number, x in enumerate(guarded):
            optimizer.zero_grad()
            (model(x).pow(2).sum(dim=1).sqrt().mean() * (100 if number == 90 else 1)).backward()
            optimizer.step()
    assert (caught.value.report.step, caught.value.report.form) == (93, "deriv_of_sqrt_at_0")
    norms = {p.step: p.gradient_norm for p in guarded.trajectory.points}
    with_norm = {step for step, norm in norms.items() if norm == norm}
    assert with_norm >= {*range(29, 64), 64, 72, 80, 88, 90}
    assert len(with_norm) < len(norms)


class Wrapper:
    """Stands for an optimizer as accelerate hands it out."""

    def __init__(self, optimizer):
        self.optimizer = optimizer


def test_a_wrapped_optimizer_is_watched_by_what_it_wraps():
    model, optimizer = small()
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(4, bad=2), model, Wrapper(optimizer)):
            before = state_of(model, optimizer)
            optimizer.zero_grad()
            normalised(model, x).backward()
            optimizer.step()
    assert caught.value.report.step == 2
    assert same(before, state_of(model, optimizer))


class Far(torch.Tensor):
    """A tensor that says it is on a device, where every look at a value costs a transfer."""

    is_cpu = False


def test_a_loss_on_a_device_is_looked_at_together_with_the_gradients():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(NonFiniteError) as caught:
        for x in guard(batches(5, bad=3), model, optimizer):
            before = state_of(model)
            optimizer.zero_grad()
            loss = normalised(model, x).as_subclass(Far)
            loss.backward()
            optimizer.step()
    assert (caught.value.report.step, caught.value.report.form) == (3, "0/0")
    assert same(before, state_of(model))


def test_several_models_are_named_by_their_place():
    first, second = nn.Linear(3, 3), nn.Linear(3, 1)
    second.weight.data[0, 0] = float("nan")
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    with pytest.raises(NonFiniteError, match=r"1\.weight"):
        for x in guard([torch.ones(2, 3)], [first, second], optimizer):
            loss = second(first(x)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
