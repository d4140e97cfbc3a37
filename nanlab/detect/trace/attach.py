"""Hangs the tracer into what the modes cannot see: module calls, backward calls, optimizer steps, custom functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from nanlab.detect.state.screen import gradients, norm, parameters
from nanlab.detect.trace.calls import next_number
from nanlab.detect.trace.labels import Label, module_at, place_of, spot_of, user_frame
from nanlab.detect.trace.quiet import aside, harmless

if TYPE_CHECKING:
    from nanlab.detect.trace.tracer import Tracer


def attach(tracer: Tracer, undo: list[Callable[[], None]]) -> None:
    """Attaches `tracer` everywhere; each attachment puts what detaches it on `undo` at once."""
    _modules(tracer, undo)
    _optimizers(tracer, undo)
    _backward(tracer, undo)
    _custom_functions(tracer, undo)


def _modules(tracer: Tracer, undo: list) -> None:
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

    undo.append(register_module_forward_pre_hook(enter).remove)
    undo.append(register_module_forward_hook(leave, always_call=True).remove)


def _holds_a_loss(output: object) -> bool:
    """Whether a model's output is, or has in it, a single number with a graph."""
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, list | tuple) else [output]
    return any(isinstance(t, Tensor) and t.dim() == 0 and t.grad_fn is not None for t in parts)


def _optimizers(tracer: Tracer, undo: list) -> None:
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

    undo.append(register_optimizer_step_pre_hook(before).remove)
    undo.append(register_optimizer_step_post_hook(after).remove)


def _backward(tracer: Tracer, undo: list) -> None:
    plain = torch.autograd.backward

    def backward(tensors, *args, **kwargs):
        losses = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        tracer.saw_losses(losses)
        return plain(tensors, *args, **kwargs)

    _replace(torch.autograd, "backward", backward, undo)


def _custom_functions(tracer: Tracer, undo: list) -> None:
    """Labels the node of a custom `autograd.Function` with the line that called ``apply``."""
    base = torch.autograd.Function
    plain = base.__dict__["apply"]

    def apply(cls, *args, **kwargs):
        frame, _ = user_frame(sys._getframe(1))
        module = module_at(frame, tracer.modules)
        tracer.calls += 1
        label = Label(cls.__name__, place_of(frame), module, tracer.calls, tracer.number + 1,
                      spot_of(frame))
        tracer.stack.append(label)
        start = next_number()
        try:
            result = plain.__get__(None, cls)(*args, **kwargs)
        finally:
            tracer.stack.pop()
        tracer.made.note(start, label)
        return result

    _replace(base, "apply", classmethod(apply), undo)


def _replace(owner: object, name: str, value: object, undo: list) -> None:
    old = owner.__dict__[name]
    setattr(owner, name, value)
    undo.append(lambda: setattr(owner, name, old))
