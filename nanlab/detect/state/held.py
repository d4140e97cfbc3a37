"""What a training run holds."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.parameter import UninitializedTensorMixin


def is_lazy(module: nn.Module) -> bool:
    """Whether `module` has weights that wait for their first input."""
    return any(isinstance(p, UninitializedTensorMixin) for p in module.parameters())


def leaves_of(losses: Sequence[Tensor]) -> list[Tensor]:
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
