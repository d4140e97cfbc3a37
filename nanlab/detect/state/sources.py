"""Says what a tensor is that was not finite before any watched operation touched it: which weight, which input."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn
from torch.utils._pytree import keystr, tree_flatten_with_path


def named_leaves(tree: object, name: str) -> Iterator[tuple[str, Tensor]]:
    """Each tensor in a nesting of lists, tuples and dicts, under a name such as ``batch[0]`` or ``batch['x']``."""
    from dataclasses import fields, is_dataclass

    if isinstance(tree, Tensor):
        yield name, tree
    elif is_dataclass(tree) and not isinstance(tree, type):
        for f in fields(tree):
            yield from named_leaves(getattr(tree, f.name), f"{name}.{f.name}")
    else:
        for path, leaf in tree_flatten_with_path(tree)[0]:
            if isinstance(leaf, Tensor):
                yield name + keystr(path), leaf
            elif leaf is not tree and is_dataclass(leaf):
                yield from named_leaves(leaf, name + keystr(path))


def as_list(optimizer: object) -> list:
    """One optimizer, several or None, as a list."""
    return list(optimizer) if isinstance(optimizer, list | tuple) else [optimizer] if optimizer is not None else []


class Sources:
    """Names tensors by their storage. Everything is looked up when asked: it costs nothing until something is bad."""

    def __init__(self, model: nn.Module | None, optimizer: object, batch: object) -> None:
        self.model, self.batch = model, batch
        self.optimizers = as_list(optimizer)
        self.modules: list[nn.Module] = []  # roots seen while tracing without a model

    def learn(self, model: nn.Module | None, optimizer: object, batch: object) -> None:
        """Takes note of what was not known at the start."""
        self.model = self.model if self.model is not None else model
        self.batch = self.batch if self.batch is not None else batch
        for one in as_list(optimizer):
            if not any(one is o for o in self.optimizers):
                self.optimizers.append(one)

    def parameters(self) -> list[Tensor]:
        """The parameters of the models and the optimizers, each once."""
        roots = [self.model] if self.model is not None else self.modules
        held = [p for root in roots for p in root.parameters()]
        held += [p for one in self.optimizers for group in one.param_groups for p in group["params"]]
        return list({id(p): p for p in held}.values())

    def name(self, t: Tensor) -> tuple[str, str]:
        """``(kind, name)`` of the tensor whose storage `t` shares; kind is parameter, buffer, state, grad, batch or
        unknown."""
        key = _storage(t)
        for kind, name, known in self.everything():
            if _storage(known) == key and key is not None:
                return kind, name
        return ("parameter", "a parameter") if t.is_leaf and t.requires_grad else ("unknown", "")

    def everything(self) -> Iterator[tuple[str, str, Tensor]]:
        """Every tensor that has a name, as ``(kind, name, tensor)``."""
        roots = [self.model] if self.model is not None else self.modules
        names: dict[int, str] = {}
        for root in roots:
            for name, p in root.named_parameters():
                names.setdefault(id(p), name)
                yield "parameter", name, p
                if p.grad is not None:
                    yield "grad", f"the gradient of {name}", p.grad
            yield from (("buffer", name, b) for name, b in root.named_buffers())
        for optimizer in self.optimizers:
            yield from self._of_optimizer(optimizer, names)
        yield from (("batch", name, t) for name, t in named_leaves(self.batch, "batch"))

    def _of_optimizer(self, optimizer: object, names: dict[int, str]) -> Iterator[tuple[str, str, Tensor]]:
        position = 0
        for group in optimizer.param_groups:
            for p in group["params"]:
                name = names.get(id(p))
                if name is None:
                    name = f"parameter {position}"
                    yield "parameter", name, p
                    if p.grad is not None:
                        yield "grad", f"the gradient of {name}", p.grad
                position += 1
                for key, value in optimizer.state.get(p, {}).items():
                    if isinstance(value, Tensor):
                        yield "state", f"{key} of {name}", value


def _storage(t: Tensor) -> int | None:
    try:
        return t.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return id(t)
