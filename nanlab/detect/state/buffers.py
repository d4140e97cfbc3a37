"""Keeps a copy of a model's buffers from before a step, renewed only where a buffer has changed."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from nanlab.detect.state.training import clean


class Buffers:
    """`take` remembers the buffers as they are, `put_back` restores them, object and values. Memory: one copy of the
    buffers. Cost: a tenth of a microsecond for a buffer that has not changed. Batch norm's are always copied, because
    its kernels write them without counting a new version."""

    def __init__(self, model: nn.Module | None) -> None:
        self._kept: list[_Kept] = []
        for prefix, module in model.named_modules() if model is not None else ():
            for name, value in module._buffers.items():
                if value is not None:
                    full = clean(f"{prefix}.{name}" if prefix else name)
                    self._kept.append(_Kept(module._buffers, name, full, isinstance(module, _NormBase)))

    def __len__(self) -> int:
        return len(self._kept)

    def take(self) -> None:
        for kept in self._kept:
            kept.take()

    def put_back(self) -> None:
        with torch.no_grad():
            for kept in self._kept:
                kept.put_back()

    def named(self) -> dict[str, Tensor]:
        """The remembered values by name; not copies."""
        return {kept.full: kept.copy for kept in self._kept if kept.copy is not None}


class _Kept:
    __slots__ = ("always", "copy", "full", "name", "owner", "tensor", "version")

    def __init__(self, owner: dict, name: str, full: str, always: bool) -> None:
        self.owner, self.name, self.full, self.always = owner, name, full, always
        self.tensor: Tensor | None = None
        self.copy: Tensor | None = None
        self.version = -1

    def take(self) -> None:
        t = self.owner.get(self.name)
        if t is None:
            self.tensor = self.copy = None
        elif self.always or t.is_inference() or t._version != self.version or t is not self.tensor:
            if self.copy is not None and self.copy.shape == t.shape and self.copy.dtype == t.dtype:
                self.copy.copy_(t.detach())
            else:
                self.copy = t.detach().clone()
            self.tensor, self.version = t, -1 if t.is_inference() else t._version

    def put_back(self) -> None:
        if self.tensor is not None and self.copy is not None:
            self.owner[self.name] = self.tensor
            self.tensor.copy_(self.copy)
            self.version = -1
