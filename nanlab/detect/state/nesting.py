"""Any nesting of tensors, lists, tuples, dicts, dataclasses, named tuples and plain values: walk, map, encode.

`encode` turns a nesting into plain lists, dicts, numbers, strings and tensors, which ``torch.load(weights_only=True)``
reads without running code; `decoding` builds the nesting again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import keystr, tree_flatten_with_path

DEEPEST = 32  # levels; nothing that a loader yields is deeper, and a list that holds itself ends here
PLAIN = (str, int, float, bool, type(None))


class NotSaved:
    """Stands in a loaded scene where an object was that no scene can hold."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return f"<not saved: {self.what}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NotSaved) and other.what == self.what

    __hash__ = None  # type: ignore[assignment]


def tensors(tree: Any, depth: int = 0) -> Iterator[Tensor]:
    """Every tensor in `tree`, in order."""
    if isinstance(tree, Tensor):
        yield tree
    elif depth < DEEPEST:
        for child in _children(tree):
            yield from tensors(child, depth + 1)


def named_leaves(tree: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """Each tensor of `tree`, containers that torch knows of included, as ``batch[0]`` or ``batch['x']``."""
    if isinstance(tree, Tensor):
        yield name, tree
    elif _is_dataclass(tree):
        for f in fields(tree):
            yield from named_leaves(getattr(tree, f.name), f"{name}.{f.name}")
    else:
        for path, leaf in tree_flatten_with_path(tree)[0]:
            if isinstance(leaf, Tensor) or (leaf is not tree and _is_dataclass(leaf)):
                yield from named_leaves(leaf, name + keystr(path))


def map_tensors(tree: Any, change: Callable[[Tensor], object], depth: int = 0) -> Any:
    """`tree` with every tensor replaced by what `change` makes of it; containers are new, all else is shared."""
    if isinstance(tree, Tensor):
        return change(tree)
    if depth >= DEEPEST:
        return tree
    again = lambda child: map_tensors(child, change, depth + 1)  # noqa: E731
    if type(tree) in (list, set, frozenset):
        return type(tree)(again(child) for child in tree)
    if isinstance(tree, tuple):
        made = [again(child) for child in tree]
        return tree if type(tree) is torch.Size else tuple.__new__(type(tree), made)
    if type(tree) in (dict, OrderedDict):
        return type(tree)((key, again(value)) for key, value in tree.items())
    if _is_dataclass(tree):
        return new_dataclass(type(tree), {f.name: again(getattr(tree, f.name)) for f in _set_fields(tree)})
    if isinstance(tree, SimpleNamespace):
        return SimpleNamespace(**{key: again(value) for key, value in vars(tree).items()})
    return tree


def _is_dataclass(tree: Any) -> bool:
    return is_dataclass(tree) and not isinstance(tree, type)


def _children(tree: Any) -> list:
    if isinstance(tree, list | tuple | set | frozenset):
        return list(tree)
    if isinstance(tree, dict):
        return list(tree.values())
    if _is_dataclass(tree):
        return [getattr(tree, f.name) for f in _set_fields(tree)]
    return list(vars(tree).values()) if isinstance(tree, SimpleNamespace) else []


def encode(tree: Any, lost: list[str], path: str = "batch", depth: int = 0) -> object:
    """`tree` as plain data. What cannot be saved is named in `lost`, by its `path`, and left out."""
    if isinstance(tree, Tensor):
        return _encode_tensor(tree)
    if type(tree) in PLAIN:
        return tree
    if depth >= DEEPEST:
        return _lose(tree, lost, f"{path}, nested deeper than {DEEPEST} levels")

    def inner(child: Any, step: object) -> object:
        return encode(child, lost, f"{path}{step}", depth + 1)

    if isinstance(tree, bytes):
        return {"kind": "bytes", "hex": tree.hex()}
    if isinstance(tree, complex):
        return {"kind": "complex", "parts": [tree.real, tree.imag]}
    if isinstance(tree, torch.dtype | torch.device):
        return {"kind": "torch", "type": type(tree).__name__, "name": str(tree).removeprefix("torch.")}
    if type(tree).__module__ == "numpy" and hasattr(tree, "dtype"):
        return _encode_numpy(tree, lost, path)
    for base in (str, int, float):  # of an enum or a version string, the value
        if isinstance(tree, base):
            return base.__str__(tree) if base is str else base(tree)
    if isinstance(tree, tuple):
        return {"kind": "tuple", **_class(tree, tuple), "names": list(getattr(tree, "_fields", ())),
                "items": [inner(child, f"[{i}]") for i, child in enumerate(tree)]}  # fmt: skip
    if type(tree) in (list, set, frozenset):
        return {"kind": type(tree).__name__, "items": [inner(child, f"[{i}]") for i, child in enumerate(tree)]}
    if _is_dataclass(tree):
        held = {f.name: inner(getattr(tree, f.name), f".{f.name}") for f in _set_fields(tree)}
        return {"kind": "dataclass", **_class(tree, None), "fields": held}
    if isinstance(tree, dict):
        pairs = [[inner(k, f" key {k!r}"), inner(v, f"[{k!r}]")] for k, v in tree.items()]
        return {"kind": "dict", "ordered": isinstance(tree, OrderedDict), "pairs": pairs}
    if hasattr(tree, "__dict__") and not isinstance(tree, type) and not callable(tree):
        return {"kind": "record", "fields": {k: inner(v, f".{k}") for k, v in vars(tree).items()}}
    return _lose(tree, lost, path)


def _lose(tree: Any, lost: list[str], path: str) -> dict:
    lost.append(f"{path} ({type(tree).__name__})")
    return {"kind": "lost", "what": type(tree).__name__}


def _class(tree: Any, plain: type | None) -> dict[str, str]:
    return {} if type(tree) is plain else {"module": type(tree).__module__, "name": type(tree).__qualname__}


def _encode_tensor(t: Tensor) -> dict:
    """A tensor with its device; a view that shows less or more than its storage holds is copied."""
    wants, device = t.requires_grad and t.is_leaf, str(t.device)
    t = t.detach()
    if t.layout is torch.strided and type(t) is Tensor and t.untyped_storage().nbytes() != t.numel() * t.element_size():
        t = t.clone(memory_format=torch.contiguous_format)
    return {"kind": "tensor", "tensor": t.as_subclass(Tensor), "device": device, "requires_grad": wants}


def _encode_numpy(array: Any, lost: list[str], path: str) -> object:
    import numpy

    try:
        t = torch.from_numpy(numpy.array(array, copy=True, order="C"))
    except TypeError:  # strings, objects, widths that torch lacks
        return encode(array.tolist(), lost, path) if array.dtype.kind in "US" else _lose(array, lost, path)
    return {"kind": "numpy", "tensor": t, "scalar": isinstance(array, numpy.generic)}


def new_dataclass(cls: type, held: dict[str, object]) -> object:
    """An instance of the dataclass `cls` with these fields; neither ``__init__`` nor ``__post_init__`` runs."""
    made = object.__new__(cls) if not issubclass(cls, dict) else dict.__new__(cls)
    for name, value in held.items():
        object.__setattr__(made, name, value)
    if isinstance(made, dict):  # transformers' ModelOutput: its fields are also its items
        dict.update(made, {name: value for name, value in held.items() if value is not None})
    return made


def _set_fields(tree: Any) -> list:
    return [f for f in fields(tree) if hasattr(tree, f.name)]
