"""Hangs the tracer into what the modes cannot see: module calls, backward calls, optimizer steps, custom functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack

from torch import Tensor

from nanlab.detect import patching
from nanlab.detect.state.screen import norm
from nanlab.detect.state.training import gradients, parameters
from nanlab.detect.trace.labels import place_of, user_frame
from nanlab.detect.trace.program import Program
from nanlab.detect.trace.quiet import aside, harmless
from nanlab.detect.trace.trace import Trace


def attach(trace: Trace, stack: ExitStack, operations: bool) -> None:
    """Has `trace` told of everything; what ends that is put on `stack`. `operations` says whether the modes will be
    on."""
    stack.callback(_modules(trace))
    stack.callback(_optimizers(trace, operations))
    stack.callback(patching.on_losses(trace.saw_losses))
    stack.callback(_custom_functions(trace.program))


def _modules(trace: Trace) -> Callable[[], None]:
    program = trace.program

    def enter(module, args):
        if not program.modules:
            trace.saw_root(module)
        program.modules.append(module)

    def leave(module, args, output):
        program.left(module, _holds_a_loss(output))

    return patching.on_call(enter, leave)


def _holds_a_loss(output: object) -> bool:
    """Whether a model's output is, or has in it, a single number with a graph."""
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, list | tuple) else [output]
    return any(isinstance(t, Tensor) and t.dim() == 0 and t.grad_fn is not None for t in parts)


def _optimizers(trace: Trace, operations: bool) -> Callable[[], None]:
    program = trace.program

    def before(optimizer, args, kwargs):
        trace.saw_optimizer(optimizer)
        program.stepped_at = place_of(user_frame(sys._getframe(1))[0])
        if trace.on_optimizer is not None:
            unwatched = trace.on_optimizer(optimizer)
        else:
            with aside():
                unwatched = operations and harmless(optimizer, norm(gradients(parameters(optimizer))))
        program.optimizing += 1
        if unwatched and len(args) < 2 and "closure" not in kwargs:  # a closure would run forward in the step
            trace.quiet.begin()

    def after(optimizer, args, kwargs):
        trace.quiet.end()
        program.optimizing = max(0, program.optimizing - 1)
        program.step += 1

    return patching.on_step(before, after)


def _custom_functions(program: Program) -> Callable[[], None]:
    """Labels the node of a custom `autograd.Function` with the line that called ``apply``."""

    def apply(cls, plain, /, *args, **kwargs):
        return program.run(cls.__name__, user_frame(sys._getframe(1))[0], plain, args, kwargs)

    return patching.around_apply(apply)
