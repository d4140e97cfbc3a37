"""Builds a nesting again from what `nesting.encode` made of it, or from what a stranger says it made.

A class is looked up among those that are loaded already; nothing is imported, no constructor is called, only declared
fields are set. Depth and number of parts are bounded: shared references would unfold into more than any memory holds.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import Any

import torch

from nanlab.detect.state.nesting import DEEPEST, PLAIN, NotSaved, new_dataclass

PARTS = 10_000_000


class Decoder:
    """Builds nestings of at most `parts` parts in all: what a file writes out takes a byte a part. Tensors go to the
    device they were on where there is one, or to `device`. A class that is not loaded comes back as a named tuple or a
    `SimpleNamespace` with the same fields. ValueError, TypeError or KeyError for what `encode` does not write."""

    def __init__(self, parts: int = PARTS, device: str | None = None) -> None:
        self.parts, self.device = parts, device

    def __call__(self, data: object, depth: int = 0) -> Any:
        self.parts -= 1
        if self.parts < 0 or depth > DEEPEST:
            raise ValueError("more parts, or deeper ones, than any scene has")
        if type(data) in PLAIN:
            return data
        if not isinstance(data, dict):
            raise TypeError(f"a {type(data).__name__} where encoded data should be")
        kind = data["kind"]
        if kind in _SIMPLE:
            return _SIMPLE[kind](data)
        return getattr(self, f"_{kind}")(data, depth + 1) if kind in KINDS else data[f"unknown kind {kind}"]

    def _items(self, data: dict, depth: int) -> list:
        return [self(child, depth) for child in data["items"]]

    def _fields(self, data: dict, depth: int) -> dict[str, object]:
        return {str(name): self(value, depth) for name, value in data["fields"].items()}

    def _tensor(self, data: dict, depth: int) -> torch.Tensor:
        t = data["tensor"].to(self.device or (data["device"] if has_device(data["device"]) else "cpu"))
        return t.requires_grad_() if data["requires_grad"] else t

    def _tuple(self, data: dict, depth: int) -> tuple:
        items = self._items(data, depth)
        if "name" not in data:
            return tuple(items)
        cls, names = _loaded(data), data["names"]
        if cls is not None and issubclass(cls, tuple) and list(getattr(cls, "_fields", ())) == names:
            return tuple.__new__(cls, items)
        return namedtuple(data["name"].rpartition(".")[2], names)(*items) if names else tuple(items)

    def _list(self, data: dict, depth: int) -> list:
        return self._items(data, depth)

    def _set(self, data: dict, depth: int) -> set:
        return set(self._items(data, depth))

    def _frozenset(self, data: dict, depth: int) -> frozenset:
        return frozenset(self._items(data, depth))

    def _dict(self, data: dict, depth: int) -> dict:
        return (OrderedDict if data["ordered"] else dict)((self(k, depth), self(v, depth)) for k, v in data["pairs"])

    def _record(self, data: dict, depth: int) -> SimpleNamespace:
        return SimpleNamespace(**self._fields(data, depth))

    def _dataclass(self, data: dict, depth: int) -> object:
        held, cls = self._fields(data, depth), _loaded(data)
        if cls is None or not is_dataclass(cls) or not held.keys() <= {f.name for f in fields(cls)}:
            return SimpleNamespace(**held)
        return new_dataclass(cls, held)


KINDS = ("tensor", "tuple", "list", "set", "frozenset", "dict", "record", "dataclass")
_SIMPLE: dict[str, Callable[[dict], object]] = {
    "bytes": lambda data: bytes.fromhex(data["hex"]),
    "complex": lambda data: complex(*data["parts"]),
    "torch": lambda data: torch.device(data["name"]) if data["type"] == "device" else _dtype(data["name"]),
    "numpy": lambda data: data["tensor"].numpy()[()] if data["scalar"] else data["tensor"].numpy(),
    "lost": lambda data: NotSaved(str(data["what"])),
}


def _dtype(name: str) -> torch.dtype:
    found = vars(torch).get(name)
    if not isinstance(found, torch.dtype):
        raise TypeError(f"{name} is no dtype")
    return found


def has_device(name: str) -> bool:
    """Whether this machine has the device called `name`, such as ``"cuda:1"``."""
    kind, _, index = name.partition(":")
    if kind in ("cpu", "meta"):
        return True
    module: Any = vars(torch).get(kind)
    return hasattr(module, "device_count") and module.is_available() and int(index or 0) < module.device_count()


def _loaded(data: dict) -> type | None:
    """The class that `data` names, if it is loaded and has no ``__del__`` that data could steer. Looked up in what is
    there, since asking a module for a name may import."""
    found: object = sys.modules.get(data["module"])
    for part in data["name"].split("."):
        found = getattr(found, "__dict__", {}).get(part)
    plain = isinstance(found, type) and not any("__del__" in vars(base) for base in found.__mro__)
    return found if plain else None  # type: ignore[return-value]
