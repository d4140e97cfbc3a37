"""Where an operation stands in the user's program: the source line, the module, the call that it belongs to."""

import contextlib
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

import torch
from torch import nn

OURS = str(Path(__file__).parents[1])
TRACE = str(Path(__file__).parent)
TORCH = str(Path(torch.__file__).parent)
SKIP = (TORCH, OURS, contextlib.__file__, "<frozen")  # frames that are nobody's program
CHECKPOINT = str(Path(TORCH) / "utils" / "checkpoint.py")
OPTIM = str(Path(TORCH) / "optim")
STANDARD = sysconfig.get_path("stdlib")
TRAIL = 12  # frames followed outwards
PACKAGES = "site-packages"
CELL = re.compile(r"ipykernel_\d+|<ipython-input|^<cell>")  # files that stand for a notebook's cell
_kind: dict[str, int] = {}  # file name -> 0 user, 1 torch or nanlab, 2 torch.optim


Spot = tuple[CodeType, int] | None  # a code object and the instruction in it: where within a line a call stands


@dataclass(frozen=True)
class Place:
    """A line of the user's program. `function` is the name of the function that holds it."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return place_name(self.file, self.line)


@dataclass(frozen=True)
class Label:
    """A call of the program: the function's name, its place, the module it ran in, and the numbers of the call and of
    the first operation inside it, as the tracer counts them."""

    name: str
    place: Place | None
    module: nn.Module | None
    call: int
    first_op: int
    spot: Spot = None


def place_name(file: str, line: int) -> str:
    """``model.py:41``; the path within the package for a file of an installed one; ``cell, line 3`` for a file that
    stands for a notebook's cell, whose own name tells nothing."""
    if CELL.search(file):
        return f"cell, line {line}"
    return f"{file.rpartition(f'{PACKAGES}/')[2] if installed(file) else Path(file).name}:{line}"


def installed(file: str) -> bool:
    """Whether `file` belongs to an installed package, and so not to the user's own program."""
    return f"/{PACKAGES}/" in file


def kind_of(file: str) -> int:
    """0 for a file of the user's, 1 for torch's or nanlab's own, 2 for torch.optim's."""
    kind = _kind.get(file)
    if kind is None:
        kind = _kind[file] = 2 if file.startswith(OPTIM) else int(file.startswith(SKIP))
    return kind


def user_frame(frame: FrameType | None) -> tuple[FrameType | None, bool]:
    """The innermost frame of the user's program at or above `frame`, and whether torch.optim lies in between."""
    optim = False
    while frame is not None:
        kind = kind_of(frame.f_code.co_filename)
        if kind == 0:
            return frame, optim
        optim = optim or kind == 2
        frame = frame.f_back
    return None, optim


def by_program(frame: FrameType | None) -> bool:
    """Whether it is the program that runs what `frame` belongs to, and not nanlab's own look at a tensor."""
    while frame is not None and frame.f_code.co_filename.startswith((TORCH, TRACE)):
        frame = frame.f_back
    return frame is None or not frame.f_code.co_filename.startswith(OURS)


def trail_of(frame: FrameType | None) -> list[tuple[str, int]]:
    """File and line of the user's frames that led to `frame`, the nearest first, without its own and without those of
    installed packages."""
    found: list[tuple[str, int]] = []
    while frame is not None and (frame := frame.f_back) is not None and len(found) < TRAIL:
        file = frame.f_code.co_filename
        if kind_of(file) == 0 and not file.startswith(STANDARD) and not installed(file):
            found.append((file, frame.f_lineno))
    return found


def recomputing(frame: FrameType | None) -> bool:
    """Whether `frame` runs for ``torch.utils.checkpoint``, which repeats a piece of the forward pass inside
    backward."""
    while frame is not None:
        if frame.f_code.co_filename == CHECKPOINT:
            return True
        frame = frame.f_back
    return False


def place_of(frame: FrameType | None) -> Place | None:
    """The place at which `frame` stands now."""
    return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame is not None else None


def in_python(frame: FrameType | None, callers: list[FrameType | None]) -> bool:
    """Whether `frame`, the innermost of the user's in a backward pass, is code of the user's that the engine runs
    (called by the last of `callers`): a hook, or the backward of a custom function."""
    caller = callers[-1] if callers else None
    return caller is not None and frame is not None and frame is not caller


def in_custom_backward(frame: FrameType | None, callers: list[FrameType | None]) -> bool:
    """Whether `frame` runs for the backward of a custom `autograd.Function`."""
    caller = callers[-1] if callers else None
    while frame is not None and frame is not caller:
        if frame.f_code.co_name in ("backward", "vjp") and kind_of(frame.f_code.co_filename) == 0:
            return True
        frame = frame.f_back
    return False


def spot_of(frame: FrameType | None) -> Spot:
    """The instruction at which `frame` stands now."""
    return (frame.f_code, frame.f_lasti) if frame is not None else None


def columns(spot: Spot) -> tuple[int, int] | None:
    """From which column to which (both from 0, in UTF-8 bytes) the expression at `spot` runs; None where it goes over
    several lines or the interpreter keeps no columns."""
    if spot is None:
        return None
    positions = list(spot[0].co_positions())
    line, end_line, start, stop = positions[min(spot[1] // 2, len(positions) - 1)]
    return (start, stop) if line == end_line and start is not None and stop is not None else None


def module_at(frame: FrameType | None, called: list[nn.Module]) -> nn.Module | None:
    """The module whose code `frame` runs: the last of those being called, or the ``self`` of another method, such as
    ``encode``, that the program calls by name."""
    if frame is not None:
        code = frame.f_code
        if code.co_name != "forward" and code.co_argcount and code.co_varnames[0] == "self":
            owner = frame.f_locals.get("self")
            if isinstance(owner, nn.Module):
                return owner
    return called[-1] if called else None


class ModulePaths:
    """Names modules by their path from the root (``"encoder.norm"``; ``""`` is the root itself)."""

    def __init__(self, model: nn.Module | None) -> None:
        self._roots: list[nn.Module] = [model] if model is not None else []
        self._given = model is not None
        self._cache: dict[int, str] = {}

    def saw(self, module: nn.Module) -> None:
        """Notes a module that was called outside any other: a possible root when no model was given."""
        if not any(module is root for root in self._roots):
            self._roots.append(module)

    def inside(self, module: nn.Module | None) -> bool:
        """Whether `module` belongs to the given model (or, without one, to anything that was called)."""
        return module is not None and any(module is m for m in self._root().modules()) if self._roots else False

    def _root(self) -> nn.Module:
        if self._given or len(self._roots) == 1:
            return self._roots[0]
        return max(self._roots, key=lambda m: sum(1 for _ in m.modules()))

    def path(self, module: nn.Module | None) -> str:
        """The dotted path of `module` in the root, or its class name when it lies outside; ``""`` for None."""
        if module is None:
            return ""
        key = id(module)
        if key not in self._cache:
            names = (name for root in self._roots for name, m in root.named_modules() if m is module)
            found = next(names, None)
            self._cache[key] = type(module).__name__ if found is None else found
        return self._cache[key]
