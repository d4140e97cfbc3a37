"""Looks at loss and gradients before the optimizer moves, and at the weights after a step that could spoil them.

Guard, watch and ``nanlab hunt`` share it. It finds *that* a step went bad and where it showed; why is the replay's
affair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from math import isfinite

from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab.detect import patching
from nanlab.detect.guarding.closures import ClosureStep
from nanlab.detect.guarding.failure import Failure
from nanlab.detect.guarding.history import History
from nanlab.detect.guarding.lossscale import ScaleWatch
from nanlab.detect.guarding.standstill import StandsStill
from nanlab.detect.state.checkpoint import Settings
from nanlab.detect.state.screen import (
    QUIET_NORM,
    all_finite,
    can_spoil,
    narrow,
    non_finite,
    norm,
    sums,
    tiny,
)
from nanlab.detect.state.training import gradients, parameters, state_tensors
from nanlab.detect.state.trajectory import LENGTH

NORM_EVERY = 8  # steps between the norms of a tiny model's gradients
LOOK_EVERY = 64  # steps between looks at the weights where arithmetic rules out that a step spoilt them


class Sentry(ScaleWatch, StandsStill):
    """Watches `optimizers` (and every backward call) between `attach` and `detach`.

    A failure is kept in `failure` and handed to `on_failure`. From then on, until `begin`, optimizers stand still:
    their gradients are hidden from them for the length of ``step``. With `hears_after`, gradients are looked at
    as soon as backward returns, before clipping or an all-reduce can spread what is bad in them. While `replaying`, no
    step is made.
    """

    def __init__(
        self,
        optimizers: Sequence[Optimizer],
        history: History,
        on_failure: Callable[[Failure], None] | None = None,
        params: Sequence[Tensor] = (),
    ) -> None:
        self.optimizers = list(optimizers)
        self.history = history
        self.on_failure = on_failure or (lambda failure: None)
        self.hears_after = self.look_always = self.replaying = False
        self.hear_grad = True
        self._undo: list[Callable[[], None]] = []
        self._extra = list(params)
        self._params: dict[int, tuple[int, list[nn.Parameter]]] = {}
        self._calm: dict[
            int, float
        ] = {}  # id of an optimizer -> the learning rate at which its settings were found calm
        self._narrow: dict[int, bool] = {}
        self._tiny: dict[int, bool] = {}
        self._usual_loss = 0.0  # the size of the last step's loss
        self.hidden: list[tuple[Tensor, Tensor]] = []
        self._closures: dict[int, ClosureStep] = {}
        self.begin()

    def begin(self) -> None:
        """Starts a new pass through the loop body."""
        self.failure: Failure | None = None
        self.loss = math.nan
        self.saw_loss = self.saw_scaler = False
        self.stepped: dict[int, int] = {}  # id of an optimizer -> its steps in this pass
        self.hold: dict[int, int] = {}  # id of an optimizer -> how many of its next steps are passed over unseen
        self.looks = self.deaf = 0  # losses looked at; how many of the next ones are passed over
        self._deferred: list[Tensor] = []
        self.scaled = False
        self._norm = self._bound = math.nan  # the gradient norm, and one that it does not exceed by much

    def attach(self) -> None:
        self._undo.append(patching.on_step(self.before_step, self.after_step, self.optimizers))

    def detach(self) -> None:
        while self._undo:
            self._undo.pop()()

    def params(self, optimizer: Optimizer) -> list[nn.Parameter]:
        """Every parameter of `optimizer`; read anew when it has got another group."""
        known = self._params.get(id(optimizer))
        if known is None or known[0] != len(optimizer.param_groups):
            found = parameters(optimizer)
            known = self._params[id(optimizer)] = (len(optimizer.param_groups), found)
            self._narrow[id(optimizer)], self._tiny[id(optimizer)] = narrow(found), tiny(found)
        return known[1]

    def every_param(self) -> list[Tensor]:
        """The parameters of all optimizers and of the model, each once."""
        held = [p for one in self.optimizers for p in self.params(one)] + self._extra
        return list({id(p): p for p in held}.values())

    # the loss

    def before_backward(self, losses: Sequence[Tensor]) -> None:
        loss = losses[0]
        if self.scaled:  # it was looked at before it was scaled
            self.scaled = False
        elif len(losses) == 1 and loss.is_cpu and loss.numel() == 1 and not self.deaf and self.failure is None:
            self.saw_loss = True  # the usual case, without the calls of the general one
            self.looks += 1
            self.loss = value = loss.item()
            if type(value) is not float or not isfinite(value):
                self._judge_loss(loss, value)
        else:
            self.look_at_loss(losses)

    def on_grad(self, outputs: Sequence[Tensor], create_graph: bool) -> None:
        """A graph that is kept is a penalty in the making, whose value the loss will carry; a scalar that is not is a
        loss of its own."""
        if self.hear_grad and not create_graph and len(outputs) == 1 and outputs[0].numel() == 1:
            self.look_at_loss(outputs)

    def look_at_loss(self, losses: Iterable[Tensor]) -> None:
        """Checks each loss now on the CPU; on a device with the gradients, so that there is one transfer a step."""
        self.saw_loss = True
        self.looks += 1
        if self.failure is not None or self.looks <= self.deaf:
            return
        for loss in losses:
            if not loss.is_cpu:
                self._deferred.append(loss.detach())
                continue
            self.loss = value = loss.item() if loss.numel() == 1 else loss.detach().sum().item()
            if type(value) is not float or not isfinite(value):
                self._judge_loss(loss, value)

    def _judge_loss(self, loss: Tensor, value: complex) -> None:
        self.loss = value = abs(value) if isinstance(value, complex) else value
        if not isfinite(value) and non_finite([loss]):
            self.fail(Failure("loss", [loss.detach()], self.step()))

    def _settle(self) -> None:
        waiting, self._deferred = self._deferred, []
        for loss, value in zip(waiting, sums(waiting), strict=True):
            if self.failure is None:
                self._judge_loss(loss, value)

    # the gradients

    def after_backward(self) -> None:
        if self.hears_after and self.failure is None and not self.saw_scaler and not any(self.hold.values()):
            self._look_at_gradients(self.every_param(), None)

    def before_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """The gradients, before they are used. Of a tiny model the norm is taken on the first 64 steps, then on every
        eighth and wherever the loss has doubled; in between the gradients are only looked at."""
        if self._deferred or self.hold or self.replaying or self.failure is not None or len(args) > 1 or kwargs:
            return self._before_unusual_step(optimizer, args, kwargs)
        key = id(optimizer)
        grads = [g for p in self.params(optimizer) if (g := p.grad) is not None]
        step = self.history.steps.get(key, 0)
        calm = self._tiny[key] and not self.look_always and abs(self.loss) <= 2.0 * self._usual_loss
        if step < LENGTH or step % NORM_EVERY == 0 or not calm:
            self._norm = self._bound = total = norm(grads)
            finite = isfinite(total)
        else:
            self._norm, self._bound = math.nan, 0.0
            finite = all_finite(grads)
        if not finite:
            self._judge_gradients(grads, optimizer)
            if self.failure is not None:
                self.hide_gradients(optimizer)
        return None

    def _before_unusual_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """A step with a closure, one that is not to be made, or one whose loss is still on its device."""
        self._settle()
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is not None:
            return self._closure_step(optimizer, closure, args, kwargs)
        passed_over = self.hold.get(id(optimizer))
        if self.failure is None and not passed_over:
            self._look_at_gradients(self.params(optimizer), optimizer)
        if self.replaying or self.failure is not None or passed_over:
            self.hide_gradients(optimizer)
        return None

    def _look_at_gradients(self, params: Sequence[Tensor], optimizer: Optimizer | None) -> None:
        grads = gradients(params)
        self._norm = self._bound = norm(grads)
        if not isfinite(self._norm):
            self._judge_gradients(grads, optimizer)

    def _judge_gradients(self, grads: list[Tensor], optimizer: Optimizer | None) -> None:
        """An exact look, after a norm that is not finite: it overflows on finite gradients, and is NaN for none."""
        found_inf = getattr(optimizer, "found_inf", None)  # a fused optimizer skips the step by itself
        if (found_inf is None or not float(found_inf)) and (bad := non_finite(grads)):
            self.fail(Failure("gradient", bad, self.step(optimizer), optimizer))

    def _closure_step(self, optimizer: Optimizer, closure: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        step = self._closures[id(optimizer)] = ClosureStep(self, optimizer, closure)
        if len(args) > 1:
            return (args[0], step, *args[2:]), kwargs
        return args, {**kwargs, "closure": step}

    def first_evaluation(self, optimizer: Optimizer) -> bool:
        """Looks at the gradients of a closure's first run, at the weights as they are; whether the step may go on."""
        if self.failure is None:
            self._look_at_gradients(self.params(optimizer), optimizer)
        return self.failure is None and not self.hold.get(id(optimizer))

    # after the step

    def after_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        key = id(optimizer)
        if self._closures or self.replaying or self.failure is not None or (self.hold and self.hold.get(key)):
            self._after_unusual_step(optimizer)
            return
        step = self.history.steps.get(key, 0)
        lr = optimizer.param_groups[0]["lr"]
        if not self._bound <= QUIET_NORM or self._calm.get(key) != lr or self.look_always or step % LOOK_EVERY == 0:
            calm = not self._narrow.get(key, True) and not can_spoil(optimizer, self._bound)
            self._calm[key] = lr if calm else math.nan
            if not calm or self.look_always or step % LOOK_EVERY == 0:
                self._look_after(optimizer, step, None)
        if self.failure is None:
            self.count(optimizer)

    def _after_unusual_step(self, optimizer: Optimizer) -> None:
        """After a step with a closure, and after one that was not to be made."""
        held = self.hold.get(id(optimizer))
        closure = self._closures.pop(id(optimizer), None)
        if closure is not None and self.failure is None and not held:
            self._look_after(optimizer, self.step(optimizer), closure)
        if self.replaying or self.failure is not None or held:
            self.stood_still(optimizer, closure)
        else:
            self.count(optimizer)

    def _look_after(self, optimizer: Optimizer, step: int, closure: ClosureStep | None) -> None:
        """Weights and optimizer state, just after a step. A closure's step kept what was before and is taken back."""
        params = self.params(optimizer)
        for where, tensors in (("weights", params), ("optimizer_state", state_tensors(optimizer))):
            tensors = [t.detach() for t in tensors]
            if not isfinite(norm(tensors)) and (bad := non_finite(tensors)):
                failure = Failure(where, bad, step, optimizer, spoilt=closure is None)
                self.fail(failure)
                break
        if closure is not None and self.failure is not None:
            closure.put_back()

    def count(self, optimizer: Optimizer) -> None:
        """Notes a step that `optimizer` has made."""
        key, history = id(optimizer), self.history
        self.stepped[key] = self.stepped.get(key, 0) + 1
        step = history.steps.get(key, 0)
        lr = optimizer.param_groups[0]["lr"]
        scale = history.scale if self.saw_scaler else math.nan
        lr = lr if type(lr) is float else float(lr)
        history.trajectory.ring.append((step, self.loss, self._norm, lr, scale))
        history.steps[key] = step + 1
        self._usual_loss = abs(self.loss)

    # the end of a pass

    def end(self) -> None:
        """Looks at what no optimizer step has looked at: losses on a device, gradients that are still accumulating."""
        if self._deferred:
            self._settle()
        if self.failure is None and not self.stepped and not self.saw_scaler:
            self._look_at_gradients(self.every_param(), None)

    def step(self, optimizer: Optimizer | None = None) -> int:
        """How many steps `optimizer` has made; without one, the optimizer that has made the fewest."""
        if optimizer is not None:
            return self.history.steps.get(id(optimizer), 0)
        counts = [self.history.steps.get(id(one), 0) for one in self.optimizers]
        return min(counts) if counts else self.history.batches

    def look_at_weights(self) -> None:
        """For a loop without an optimizer, which changes its weights by hand."""
        held = [p.detach() for p in self.every_param()]
        if not isfinite(norm(held)) and (bad := non_finite(held)):
            self.fail(Failure("weights", bad, self.step(), spoilt=True))

    def fail(self, failure: Failure) -> None:
        """Keeps `failure` and tells `on_failure`; the optimizers stand still from here on."""
        self.failure = failure
        failure.made, failure.looks = dict(self.stepped), max(0, self.looks - 1)
        failure.settings = Settings(self.optimizers)
        self.on_failure(failure)
