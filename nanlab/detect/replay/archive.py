"""Reads a ``torch.save`` archive from a stranger: tensors and plain data, and nothing else.

Before anything is built, the archive is weighed (no entry may be compressed, together they are no larger than the file)
and the pickle in it is read through for instructions that a scene does not have. What is then built are lists, dicts,
numbers, strings and tensors over the bytes of the file; no name in the file is imported or called.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._utils import _rebuild_qtensor, _rebuild_tensor_v2
from torch.storage import TypedStorage, UntypedStorage

CONSTANTS = ("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE")
BUILDERS = ("EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT", "SETITEM", "SETITEMS", "EMPTY_TUPLE", "TUPLE", "TUPLE1",
            "TUPLE2", "TUPLE3")  # fmt: skip
MEMO = ("BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET")
OPCODES = {"PROTO", "STOP", "MARK", *CONSTANTS, *BUILDERS, *MEMO, "GLOBAL", "BINPERSID", "REDUCE"}
EXPANDED = 3  # bytes that tensors may show beyond those stored, as a multiple of the file
LAYOUTS = {str(one): one for one in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr,
                                     torch.sparse_bsc)}  # fmt: skip


def load(path: Path) -> tuple[object, int]:
    """The data in the archive at `path`, tensors on the CPU, and the bytes of its pickle. Raises ValueError (or one of
    the many errors of a damaged file) where it holds anything else. Cost: the file is read twice, and held once."""
    with zipfile.ZipFile(path) as archive:
        _weigh(archive, path.stat().st_size)
        root = next(n for n in archive.namelist() if n.endswith("/data.pkl")).removesuffix("data.pkl")
        if f"{root}byteorder" in archive.namelist() and archive.read(f"{root}byteorder") != b"little":
            raise ValueError("its numbers are big-endian")
        program = archive.read(f"{root}data.pkl")
        _look_through(program)
        reader = _Reader(program, archive, root, EXPANDED * path.stat().st_size)
        return reader.load(), len(program)


def _weigh(archive: zipfile.ZipFile, size: int) -> None:
    entries = archive.infolist()
    if any(e.compress_type != zipfile.ZIP_STORED for e in entries) or sum(e.file_size for e in entries) > size:
        raise ValueError("its entries are larger than the file")
    if (spoilt := archive.testzip()) is not None:
        raise zipfile.BadZipFile(spoilt)


def _look_through(program: bytes) -> None:
    """Refuses instructions that a scene has no use for, and a memo with gaps, which would be filled with memory."""
    for count, (opcode, argument, _) in enumerate(pickletools.genops(program)):
        if opcode.name not in OPCODES:
            raise pickle.UnpicklingError(f"instruction {opcode.name}")
        if opcode.name.endswith("BINPUT") and not (isinstance(argument, int) and argument <= count):
            raise pickle.UnpicklingError("memo")


class _Reader(pickle.Unpickler):
    """`spare` is what tensors may show beyond the bytes that are stored."""

    def __init__(self, program: bytes, archive: zipfile.ZipFile, root: str, spare: int) -> None:
        super().__init__(io.BytesIO(program))
        self.archive, self.root, self.spare = archive, root, spare
        self._storages: dict[str, UntypedStorage] = {}
        self._made: dict[tuple[str, str], Callable[..., object]] = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch", "Size"): torch.Size,
            ("torch.serialization", "_get_layout"): LAYOUTS.__getitem__,
            ("torch._utils", "_rebuild_tensor_v2"): self._tensor,
            ("torch._utils", "_rebuild_tensor_v3"): self._tensor_of_dtype,
            ("torch._utils", "_rebuild_sparse_tensor"): _sparse,
            ("torch._utils", "_rebuild_nested_tensor"): _nested,
            ("torch._utils", "_rebuild_qtensor"): self._quantized,
        }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self._made:
            return self._made[module, name]
        found = vars(torch).get(name) if module == "torch" else None
        if isinstance(found, torch.dtype | torch.qscheme):
            return found
        if isinstance(found, type) and issubclass(found, TypedStorage):
            return found._dtype  # `dtype` would warn
        if (module, name) == ("torch.storage", "UntypedStorage"):
            return torch.uint8
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> TypedStorage:
        _, dtype, key, _, count = pid
        if key not in self._storages:
            data = bytearray(self.archive.read(f"{self.root}data/{key}"))
            empty = UntypedStorage(0)
            self._storages[key] = torch.frombuffer(data, dtype=torch.uint8).untyped_storage() if data else empty
        held = self._storages[key]
        if held.nbytes() != count * dtype.itemsize:
            raise ValueError(f"storage {key} has another size")
        return TypedStorage(wrap_storage=held, dtype=dtype, _internal=True)

    def _tensor(self, storage, offset, size, stride, grad=False, hooks=None, metadata=None) -> Tensor:
        return self._paid(_rebuild_tensor_v2(storage, offset, size, stride, False, OrderedDict(), metadata))

    def _tensor_of_dtype(self, storage, offset, size, stride, grad, hooks, dtype, metadata=None) -> Tensor:
        typed = TypedStorage(wrap_storage=storage._untyped_storage, dtype=dtype, _internal=True)
        return self._tensor(typed, offset, size, stride, metadata=metadata)

    def _quantized(self, storage, offset, size, stride, quantizer, grad=False, hooks=None) -> Tensor:
        return self._paid(_rebuild_qtensor(storage, offset, size, stride, quantizer, False, OrderedDict()))

    def _paid(self, t: Tensor) -> Tensor:
        self.spare -= max(0, t.numel() * t.element_size() - t.untyped_storage().nbytes())
        if self.spare < 0:
            raise ValueError("its tensors show more than it stores")
        return t


def _sparse(layout: torch.layout, data: tuple) -> Tensor:
    if layout is torch.sparse_coo:
        coalesced = data[3] if len(data) > 3 else None
        return torch.sparse_coo_tensor(*data[:3], is_coalesced=coalesced, check_invariants=True)
    return torch.sparse_compressed_tensor(*data[:4], layout=layout, check_invariants=True)


def _nested(buffer: Tensor, sizes: Tensor, strides: Tensor, offsets: Tensor) -> Tensor:
    rows = zip(sizes.tolist(), strides.tolist(), offsets.tolist(), strict=True)
    return torch.nested.as_nested_tensor([buffer.as_strided(*row) for row in rows])
