"""What a training run holds, listed once: weights, gradients, buffers, optimizer state and batch, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torch import Tensor, nn
from torch.optim import Optimizer

from nanlab.detect.state.nesting import named_leaves

Optimizers = Optimizer | Sequence[Optimizer] | None


class TrainingState:
    """The models, optimizers and batch of a run. Everything is looked up when asked for: it costs nothing before.

    `model` is one model or None; then `modules` are the models, which whoever watches the run adds as it meets them.
    """

    def __init__(self, model: nn.Module | None = None, optimizer: Optimizers = None, batch: object = None) -> None:
        self.model, self.batch = model, batch
        self.optimizers = as_list(optimizer)
        self.modules: list[nn.Module] = []

    def learn(self, model: nn.Module | None, optimizer: Optimizers, batch: object) -> None:
        """Takes note of what was not known at the start."""
        self.model = self.model if self.model is not None else model
        self.batch = self.batch if self.batch is not None else batch
        known = {id(one) for one in self.optimizers}
        self.optimizers += [one for one in as_list(optimizer) if id(one) not in known]

    @property
    def roots(self) -> list[nn.Module]:
        return [self.model] if self.model is not None else self.modules

    def parameters(self) -> list[Tensor]:
        """The parameters of the models and the optimizers, each once."""
        held = [p for root in self.roots for p in root.parameters()]
        held += [p for one in self.optimizers for p in parameters(one)]
        return list({id(p): p for p in held}.values())

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters with their names; those that only an optimizer knows are ``parameter 0``, ``parameter 1``…"""
        known, extra = set(), 0
        for root in self.roots:
            for name, p in root.named_parameters():
                if id(p) not in known:
                    known.add(id(p))
                    yield clean(name), p
        for p in (p for one in self.optimizers for p in parameters(one)):
            if id(p) not in known:
                known.add(id(p))
                yield f"parameter {extra}", p
                extra += 1

    def buffers(self) -> Iterator[tuple[str, Tensor]]:
        return ((clean(name), b) for root in self.roots for name, b in root.named_buffers())

    def optimizer_state(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor in the optimizers' state, as ``exp_avg of 0.weight``."""
        names = {id(p): name for name, p in self.weights()}
        for one in self.optimizers:
            for p, key, t in state_of(one):
                yield f"{key} of {names.get(id(p), 'a parameter')}", t

    def everything(self) -> Iterator[tuple[str, str, Tensor]]:
        """Every tensor, as ``(kind, name, tensor)``; kind is parameter, grad (named as its parameter), buffer, state or
        batch."""
        for name, p in self.weights():
            yield "parameter", name, p
            if p.grad is not None:
                yield "grad", name, p.grad
        yield from (("buffer", name, b) for name, b in self.buffers())
        yield from (("state", name, t) for name, t in self.optimizer_state())
        yield from (("batch", name, t) for name, t in named_leaves(self.batch, "batch"))

    def name(self, t: Tensor) -> tuple[str, str]:
        """``(kind, name)`` of the tensor whose storage `t` shares; kind ``"unknown"`` where there is none."""
        key = _storage(t)
        for kind, name, known in self.everything():
            if _storage(known) == key:
                return kind, f"the gradient of {name}" if kind == "grad" else name
        return ("parameter", "a parameter") if t.is_leaf and t.requires_grad else ("unknown", "")


def as_list(optimizer: Optimizers) -> list[Optimizer]:
    """One optimizer, several or none, as a list; of a wrapper (accelerate's) the optimizer that it wraps."""
    given = [] if optimizer is None else optimizer if isinstance(optimizer, Iterable) else [optimizer]
    return [_unwrapped(one) for one in given]


def _unwrapped(optimizer: Optimizer) -> Optimizer:
    while isinstance(inner := getattr(optimizer, "optimizer", None), Optimizer):
        optimizer = inner
    return optimizer


def clean(name: str) -> str:
    """A parameter's name without what DataParallel and ``torch.compile`` wrap around a model."""
    return name.replace("_orig_mod.", "").removeprefix("module.")


def named_weights(model: nn.Module | None, optimizer: Optimizers) -> dict[str, Tensor]:
    return dict(TrainingState(model, optimizer).weights())


def named_buffers(model: nn.Module | None) -> dict[str, Tensor]:
    return dict(TrainingState(model).buffers())


def parameters(optimizer: Optimizer) -> list[nn.Parameter]:
    """Every parameter that `optimizer` updates, in order."""
    return [p for group in optimizer.param_groups for p in group["params"]]


def gradients(params: Iterable[Tensor]) -> list[Tensor]:
    return [g for p in params if (g := p.grad) is not None]


def state_of(optimizer: Optimizer) -> Iterator[tuple[Tensor, str, Tensor]]:
    """``(parameter, key, tensor)`` of everything in the optimizer's state, lists of tensors (LBFGS) included."""
    for p, state in optimizer.state.items():
        for key, value in state.items():
            if isinstance(value, Tensor):
                yield p, key, value
            elif isinstance(value, list):
                yield from ((p, f"{key}[{i}]", t) for i, t in enumerate(value) if isinstance(t, Tensor))


def state_tensors(optimizer: Optimizer) -> list[Tensor]:
    """Every floating tensor in the optimizer's state."""
    return [t for _, _, t in state_of(optimizer) if t.is_floating_point() or t.is_complex()]


def is_lazy(module: nn.Module) -> bool:
    """Whether `module` has weights that wait for their first input."""
    return any(map(nn.parameter.is_lazy, module.parameters()))


def leaves_of(losses: Iterable[Tensor]) -> list[Tensor]:
    """The tensors whose ``.grad`` backward from `losses` will fill."""
    todo, seen, found = [loss.grad_fn for loss in losses if loss.grad_fn is not None], set(), []
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        todo += [parent for parent, _ in node.next_functions if parent is not None]
    return found


def _storage(t: Tensor) -> int:
    try:
        return t.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return id(t)
