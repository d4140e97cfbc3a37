"""Hangs the tracer into what the modes cannot see: module calls, backward calls, optimizer steps, custom functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

from nanlab.detect import patching
from nanlab.detect.state.screen import norm
from nanlab.detect.state.training import gradients, parameters
from nanlab.detect.trace.calls import next_number
from nanlab.detect.trace.labels import Label, module_at, place_of, spot_of, user_frame
from nanlab.detect.trace.quiet import aside, harmless

if TYPE_CHECKING:
    from nanlab.detect.trace.tracer import Tracer


def attach(tracer: Tracer, undo: list[Callable[[], None]]) -> None:
    """Attaches `tracer` everywhere; each attachment puts what detaches it on `undo` at once."""
    undo.append(_modules(tracer))
    undo.append(_optimizers(tracer))
    undo.append(patching.on_losses(tracer.saw_losses))
    undo.append(_custom_functions(tracer))


def _modules(tracer: Tracer) -> Callable[[], None]:
    def enter(module, args):
        if not tracer.modules:
            tracer.saw_root(module)
        tracer.modules.append(module)

    def leave(module, args, output):
        while tracer.modules and tracer.modules.pop() is not module:
            pass  # a module whose forward raised, and was caught, left no other trace
        if tracer.modules:
            tracer.last_inner = tracer.number
        elif _holds_a_loss(output):
            tracer.loss_spans.append((module, tracer.last_inner, tracer.number))

    return patching.on_call(enter, leave)


def _holds_a_loss(output: object) -> bool:
    """Whether a model's output is, or has in it, a single number with a graph."""
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, list | tuple) else [output]
    return any(isinstance(t, Tensor) and t.dim() == 0 and t.grad_fn is not None for t in parts)


def _optimizers(tracer: Tracer) -> Callable[[], None]:
    def before(optimizer, args, kwargs):
        tracer.saw_optimizer(optimizer)
        tracer.stepped_at = place_of(user_frame(sys._getframe(1))[0])
        tracer.hushed = False
        if tracer.on_optimizer is not None:
            tracer.on_optimizer(optimizer)
        elif tracer.operations:
            with aside():
                tracer.hushed = harmless(optimizer, norm(gradients(parameters(optimizer))))
        tracer.optimizing += 1
        if tracer.hushed and len(args) < 2 and "closure" not in kwargs:  # a closure would run forward in the step
            tracer.quiet.begin()

    def after(optimizer, args, kwargs):
        tracer.quiet.end()
        tracer.optimizing = max(0, tracer.optimizing - 1)
        tracer.step += 1

    return patching.on_step(before, after)


def _custom_functions(tracer: Tracer) -> Callable[[], None]:
    """Labels the node of a custom `autograd.Function` with the line that called ``apply``."""

    def apply(cls, plain, /, *args, **kwargs):
        frame, _ = user_frame(sys._getframe(1))
        module = module_at(frame, tracer.modules)
        tracer.calls += 1
        label = Label(cls.__name__, place_of(frame), module, tracer.calls, tracer.number + 1, spot_of(frame))
        tracer.stack.append(label)
        start = next_number()
        try:
            result = plain(*args, **kwargs)
        finally:
            tracer.stack.pop()
        tracer.made.note(start, label)
        return result

    return patching.around_apply(apply)
