"""Looks at loss and gradients before the optimizer moves, and at the weights after a step that could spoil them.

Guard, watch and ``nanlab hunt`` each have one. It finds *that* a step went bad and where it showed; why is the replay's
affair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from math import isfinite
from typing import Any

from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer

from nanlab.detect import patching
from nanlab.detect.guarding.closures import ClosureStep
from nanlab.detect.guarding.failure import Failure
from nanlab.detect.guarding.history import History
from nanlab.detect.guarding.lossscale import LossScale
from nanlab.detect.guarding.optimized import Optimized
from nanlab.detect.state.checkpoint import Settings
from nanlab.detect.state.screen import QUIET_NORM, all_finite, can_spoil, non_finite, norm, sums
from nanlab.detect.state.training import gradients, state_tensors
from nanlab.detect.state.trajectory import LENGTH

NORM_EVERY = 8  # steps between the norms of a tiny model's gradients
LOOK_EVERY = 64  # steps between looks at the weights where arithmetic rules out that a step spoilt them


class Mode(Enum):
    """What happens to the steps of the program."""

    WATCHING = "they are looked at, and made"
    REPLAYING = "one runs again: it is looked at as soon as backward returns, and no optimizer moves"
    PASSING = "nothing is looked at"


WATCHING, REPLAYING, PASSING = Mode


class Pass:
    """What was seen in one pass through the loop body. `stepped` counts the optimizers' steps by ``id``, `looks` the
    losses; `norm` is that of the gradients, and `bound` one that it does not exceed by much. In a replay, the first
    `skip_losses` losses and `skip_steps` steps of each optimizer are passed over: they were made before the failure."""

    __slots__ = ("bound", "deferred", "failure", "looks", "loss", "norm", "saw_loss", "saw_scaler", "scaled",
                 "skip_losses", "skip_steps", "stepped")  # fmt: skip

    def __init__(self, skip_steps: dict[int, int] | None = None, skip_losses: int = 0) -> None:
        self.failure: Failure | None = None
        self.loss = self.norm = self.bound = math.nan
        self.saw_loss = self.saw_scaler = self.scaled = False
        self.looks, self.skip_losses = 0, skip_losses
        self.stepped: dict[int, int] = {}
        self.skip_steps = skip_steps
        self.deferred: list[Tensor] = []


class StepWatcher(patching.Listener):
    """Watches the steps of `optimizers` (and every backward call) between `attach` and `detach`.

    `now` is the present pass. A failure is kept in it and handed to `on_failure`; for the rest of the pass, optimizers
    stand still: their gradients are hidden from them for the length of ``step``. `more` gives the parameters that no
    optimizer has. With `early`, gradients are looked at as soon as backward returns, before clipping or an all-reduce
    can spread what is bad in them. `on_end` is called when a step has ended: after an optimizer's, or after backward
    where there is no optimizer. Where `thorough` is set, weights are looked at after every step.
    """

    def __init__(
        self,
        optimizers: Sequence[Optimizer],
        history: History,
        on_failure: Callable[[Failure], None],
        more: Callable[[], Iterable[Tensor]] = tuple,
        *,
        early: bool = False,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self.optimizers, self.history = list(optimizers), history
        self.on_failure, self.on_end = on_failure, on_end
        self.now, self.mode = Pass(), WATCHING
        self.thorough, self.hears_grad = False, True
        self.hears_after = self._early = early
        self._more = more
        self._scale = LossScale()
        self._known: dict[int, Optimized] = {}
        self._usual_loss = 0.0  # the size of the last step's loss
        self._undo: list[Callable[[], None]] = []

    def attach(self) -> None:
        self._undo += [patching.on_step(self.before_step, self.after_step, self.optimizers), patching.listen(self)]

    def detach(self) -> None:
        while self._undo:
            self._undo.pop()()

    @contextmanager
    def replaying(self, on_failure: Callable[[Failure], None], hears_grad: bool = True) -> Iterator[None]:
        """For a step that runs again. Without `hears_grad`, ``autograd.grad`` is not heard: a patch uses it itself."""
        before, self.on_failure, self.hears_grad = self.on_failure, on_failure, hears_grad
        self._turn(REPLAYING)
        try:
            yield
        finally:
            self._turn(WATCHING)
            self.now, self.on_failure, self.hears_grad = Pass(), before, True

    @contextmanager
    def passing(self) -> Iterator[None]:
        before = self.mode
        self._turn(PASSING)
        try:
            yield
        finally:
            self._turn(before)

    def _turn(self, mode: Mode) -> None:
        self.mode = mode
        self.hears_after = mode is REPLAYING or (mode is WATCHING and self._early)

    def known(self, optimizer: Optimizer) -> Optimized:
        """What is known of `optimizer`; read anew when it has got another parameter group."""
        known = self._known.get(id(optimizer))
        if known is None or known.groups != len(optimizer.param_groups):
            known = self._known[id(optimizer)] = Optimized(optimizer)
        return known

    @property
    def in_closure(self) -> bool:
        """Whether an optimizer is evaluating its closure, at weights that move meanwhile."""
        return any(known.closure is not None for known in self._known.values())

    def every_param(self) -> list[Tensor]:
        """The parameters of all optimizers and of the model, each once."""
        held: list[Tensor] = [p for one in self.optimizers for p in self.known(one).params]
        return list({id(p): p for p in [*held, *self._more()]}.values())

    # the loss

    def before_backward(self, losses: Sequence[Tensor]) -> None:
        now, loss = self.now, losses[0]
        if now.scaled:  # it was looked at before it was scaled
            now.scaled = False
        elif len(losses) == 1 and loss.is_cpu and loss.numel() == 1 and self.mode is WATCHING and now.failure is None:
            now.saw_loss = True  # the usual case, without the calls of the general one
            now.looks += 1
            now.loss = value = loss.item()
            if type(value) is not float or not isfinite(value):
                self._judge_loss(loss, value)
        else:
            self.look_at_loss(losses)

    def on_grad(self, outputs: Sequence[Tensor], create_graph: bool) -> None:
        """A graph that is kept is a penalty in the making, whose value the loss will carry; a scalar that is not is a
        loss of its own."""
        if self.hears_grad and not create_graph and len(outputs) == 1 and outputs[0].numel() == 1:
            self.look_at_loss(outputs)

    def look_at_loss(self, losses: Iterable[Tensor]) -> None:
        """Checks each loss now on the CPU; on a device with the gradients, so that there is one transfer a step."""
        now = self.now
        now.saw_loss = True
        now.looks += 1
        if now.failure is not None or self.mode is PASSING or now.looks <= now.skip_losses:
            return
        for loss in losses:
            if not loss.is_cpu:
                now.deferred.append(loss.detach())
                continue
            now.loss = value = loss.item() if loss.numel() == 1 else loss.detach().sum().item()
            if type(value) is not float or not isfinite(value):
                self._judge_loss(loss, value)

    def _judge_loss(self, loss: Tensor, value: complex) -> None:
        self.now.loss = size = abs(value) if isinstance(value, complex) else value
        if not isfinite(size) and non_finite([loss]):
            self.fail(Failure("loss", [loss.detach()], self.step()))

    def _settle(self) -> None:
        waiting, self.now.deferred = self.now.deferred, []
        for loss, value in zip(waiting, sums(waiting), strict=True):
            if self.now.failure is None:
                self._judge_loss(loss, value)

    # the loss scaler: the loss is looked at before it is scaled, so that only what scaling itself does is forgiven

    def on_scale(self, scaler: GradScaler, outputs: Any) -> None:
        self.now.saw_scaler = self.now.scaled = True
        self.look_at_loss((outputs,) if isinstance(outputs, Tensor) else tuple(outputs))

    def on_scaler_step(self, scaler: GradScaler, optimizer: Optimizer, stepped: bool) -> None:
        """A step that the scaler skipped is a step that the program made: it counts."""
        if not stepped and self.now.failure is None:
            self.count(optimizer)

    def on_scaler_update(self, scaler: GradScaler) -> None:
        self.history.scale = scale = scaler.get_scale()
        fault = self._scale.fault(scale, self.step()) if self.now.failure is None else None
        if fault is not None:
            bad = non_finite(gradients(self.every_param()))
            self.fail(Failure("gradient", bad, max(0, self.step() - 1), notes=[fault]))

    # the gradients

    def after_backward(self) -> None:
        now = self.now
        if self.on_end is not None and not self.optimizers:
            self._look_at_gradients(self.every_param(), None)
            self.look_at_weights()
            self.on_end()
        elif now.failure is None and not now.saw_scaler and not any((now.skip_steps or {}).values()):
            self._look_at_gradients(self.every_param(), None)

    def before_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """The gradients, before they are used. Of a tiny model the norm is taken on the first 64 steps, then on every
        eighth and wherever the loss has doubled; in between the gradients are only looked at."""
        now = self.now
        if (
            now.deferred or now.skip_steps or self.mode is not WATCHING or now.failure is not None or len(args) > 1
            or kwargs
        ):  # fmt: skip
            return self._before_unusual_step(optimizer, args, kwargs)
        known = self._known.get(id(optimizer))
        if known is None or known.groups != len(optimizer.param_groups):
            known = self.known(optimizer)
        grads = [g for p in known.params if (g := p.grad) is not None]
        step = self.history.steps.get(id(optimizer), 0)
        calm = known.tiny and not self.thorough and abs(now.loss) <= 2.0 * self._usual_loss
        if step < LENGTH or step % NORM_EVERY == 0 or not calm:
            now.norm = now.bound = total = norm(grads)
            finite = isfinite(total)
        else:
            now.norm, now.bound = math.nan, 0.0
            finite = all_finite(grads)
        if not finite:
            self._judge_gradients(grads, optimizer)
            if self.now.failure is not None:
                known.hide_gradients()
        return None

    def _before_unusual_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """A step with a closure, one that is not to be made, or one whose loss is still on its device."""
        self._settle()
        known, closure = self.known(optimizer), args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is not None:
            step = ClosureStep(closure, known.params, optimizer, lambda: self._first_evaluation(known), self.passing)
            known.closure = step
            return ((args[0], step, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": step})
        passed_over = self._passed_over(optimizer)
        if self.now.failure is None and not passed_over:
            self._look_at_gradients(known.params, optimizer)
        if self.mode is REPLAYING or self.now.failure is not None or passed_over:
            known.hide_gradients()
        return None

    def _passed_over(self, optimizer: Optimizer) -> bool:
        return bool(self.now.skip_steps and self.now.skip_steps.get(id(optimizer)))

    def _first_evaluation(self, known: Optimized) -> bool:
        """Looks at the gradients of a closure's first run, at the weights as they are; whether the step may go on."""
        if self.now.failure is None:
            self._look_at_gradients(known.params, known.optimizer)
        return self.now.failure is None and not self._passed_over(known.optimizer)

    def _look_at_gradients(self, params: Sequence[Tensor], optimizer: Optimizer | None) -> None:
        grads = gradients(params)
        self.now.norm = self.now.bound = size = norm(grads)
        if not isfinite(size):
            self._judge_gradients(grads, optimizer)

    def _judge_gradients(self, grads: list[Tensor], optimizer: Optimizer | None) -> None:
        """An exact look, after a norm that is not finite: it overflows on finite gradients, and is NaN for none."""
        found_inf = getattr(optimizer, "found_inf", None)  # a fused optimizer skips the step by itself
        if (found_inf is None or not float(found_inf)) and (bad := non_finite(grads)):
            self.fail(Failure("gradient", bad, self.step(optimizer), optimizer))

    # after the step

    def after_step(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        now, known, key = self.now, self._known.get(id(optimizer)) or self.known(optimizer), id(optimizer)
        if known.closure is not None or now.skip_steps or self.mode is not WATCHING or now.failure is not None:
            self._after_unusual_step(known)
        else:
            step = self.history.steps.get(key, 0)
            lr, due = optimizer.param_groups[0]["lr"], self.thorough or step % LOOK_EVERY == 0
            if not now.bound <= QUIET_NORM or known.calm_lr != lr or due:
                calm = not known.narrow and not can_spoil(optimizer, now.bound)
                known.calm_lr = lr if calm else math.nan
                if not calm or due:
                    self._look_after(known, step)
            if now.failure is None:
                self.count(optimizer)
        if self.on_end is not None:
            self.on_end()

    def _after_unusual_step(self, known: Optimized) -> None:
        """After a step with a closure, and after one that was not to be made."""
        optimizer, now = known.optimizer, self.now
        passed_over, closure = self._passed_over(optimizer), known.closure
        if closure is not None and now.failure is None and not passed_over:
            self._look_after(known, self.step(optimizer))
        if self.mode is WATCHING and now.failure is None and not passed_over:
            known.closure = None
            self.count(optimizer)
            return
        known.stood_still()
        if passed_over and now.skip_steps:
            now.skip_steps[id(optimizer)] -= 1
        elif self.mode is REPLAYING:
            now.stepped[id(optimizer)] = now.stepped.get(id(optimizer), 0) + 1

    def _look_after(self, known: Optimized, step: int) -> None:
        """Weights and optimizer state, just after a step. A closure's step kept what was before and is taken back."""
        for where, held in (("weights", known.params), ("optimizer_state", state_tensors(known.optimizer))):
            tensors = [t.detach() for t in held]
            if not isfinite(norm(tensors)) and (bad := non_finite(tensors)):
                self.fail(
                    Failure(
                        where, bad, step, known.optimizer, spoilt=known.closure is None or known.closure.before is None
                    )
                )
                break

    def count(self, optimizer: Optimizer) -> None:
        """Notes a step that `optimizer` has made."""
        key, history, now = id(optimizer), self.history, self.now
        now.stepped[key] = now.stepped.get(key, 0) + 1
        step = history.steps.get(key, 0)
        lr = optimizer.param_groups[0]["lr"]
        scale = history.scale if now.saw_scaler else math.nan
        lr = lr if type(lr) is float else float(lr)
        history.trajectory.ring.append((step, now.loss, now.norm, lr, scale))
        history.steps[key] = step + 1
        self._usual_loss = abs(now.loss)

    # the end of a pass

    def end(self) -> None:
        """Looks at what no optimizer step has looked at: losses on a device, gradients that are still accumulating."""
        if self.now.deferred:
            self._settle()
        if self.now.failure is None and not self.now.stepped and not self.now.saw_scaler:
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
        self.now.failure = failure
        failure.made, failure.looks = dict(self.now.stepped), max(0, self.now.looks - 1)
        failure.settings = Settings(self.optimizers)
        self.on_failure(failure)
