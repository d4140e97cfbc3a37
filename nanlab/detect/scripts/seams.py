"""Where a script shows that a step begins, which batch it got, and which tensors backward will fill."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn
from torch.nn.parameter import UninitializedTensorMixin
from torch.optim import Optimizer


def on_zero_grad(call: Callable[[], None]) -> Callable[[], None]:
    """Calls `call` before any optimizer clears its gradients; returns what ends that."""
    plain = Optimizer.zero_grad

    def zero_grad(optimizer, *args, **kwargs):
        call()
        return plain(optimizer, *args, **kwargs)

    Optimizer.zero_grad = zero_grad
    return lambda: setattr(Optimizer, "zero_grad", plain)


def on_optimizer(call: Callable[[], None]) -> Callable[[], None]:
    """Calls `call` whenever an optimizer is made; returns what ends that."""
    plain = Optimizer.__init__

    def init(optimizer, *args, **kwargs):
        call()
        plain(optimizer, *args, **kwargs)

    Optimizer.__init__ = init
    return lambda: setattr(Optimizer, "__init__", plain)


def on_batch(change: Callable[[object], object]) -> Callable[[], None]:
    """Hands every batch that a DataLoader yields to `change`, and the program what that returns; returns what ends
    it."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    plain = _BaseDataLoaderIter.__next__

    def hand_over(iterator):
        return change(plain(iterator))

    _BaseDataLoaderIter.__next__ = hand_over
    return lambda: setattr(_BaseDataLoaderIter, "__next__", plain)


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
