"""What a script trains, learnt as its modules, optimizers and losses are seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor, nn

from nanlab.detect.state.training import leaves_of
from nanlab.detect.state.values import is_finite


class Trained:
    """The modules that were called outside any other (`roots`), and the leaves that a loss was computed from."""

    def __init__(self) -> None:
        self.roots: list[nn.Module] = []
        self._known: set[int] = set()  # ids of the roots and of all that is in them
        self._finite: list[tuple[nn.Module, set[str]]] = []  # each root, and its buffers that were finite
        self._leaves: list[Tensor] = []

    def is_new(self, module: nn.Module) -> bool:
        return id(module) not in self._known

    def meet(self, module: nn.Module) -> None:
        self._known.update(id(m) for m in module.modules())
        self.roots.append(module)
        named = module.named_buffers()
        self._finite.append((module, {name for name, b in named if not nn.parameter.is_lazy(b) and is_finite(b)}))

    def saw_losses(self, losses: Sequence[Tensor]) -> None:
        self._leaves = leaves_of(losses)

    def parameters(self) -> Iterator[Tensor]:
        for root in self.roots:
            yield from (p for p in root.parameters() if not nn.parameter.is_lazy(p))
        yield from self._leaves

    def buffers_turned_bad(self) -> list[Tensor]:
        """Running statistics and the like that were finite and no longer are; they are forgotten."""
        found = []
        for module, names in self._finite:
            for name, b in module.named_buffers():
                if name in names and not is_finite(b):
                    found.append(b)
                    names.discard(name)
        return found
