"""What NumPy said while a script ran: it knows the line of a division by zero that torch never sees.

NumPy hands its floating-point errors to an object instead of warning of them, and that object warns as NumPy would
have: text, line and filters are the script's.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import warnings
from collections import deque
from dataclasses import dataclass
from types import FrameType

from nanlab.detect.trace.labels import Place, place_of, user_frame

KEPT = 256  # the latest errors
LIBRARIES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
FORMS = {  # kind of error, what its function is called -> form
    ("invalid", r"divide|remainder|fmod"): "0/0",
    ("invalid", r"log"): "log(<0)",
    ("invalid", r"sqrt"): "sqrt(<0)",
    ("invalid", r"power"): "pow(<0, fraction)",
    ("invalid", r"subtract|add|reduce"): "inf-inf",
    ("invalid", r"multiply"): "0*inf",
    ("divide", r"log"): "log(0)",
    ("divide", r""): "x/0",
    ("overflow", r""): "overflow",
}
NUMPYS = {"invalid": "invalid", "divide": "divide", "overflow": "over"}  # kind -> its name in numpy.seterr


@dataclass(frozen=True)
class ArrayError:
    """One floating-point error: NumPy's words, its kind, and the line of the program."""

    text: str
    kind: str
    place: Place

    @property
    def form(self) -> str | None:
        found = (form for (kind, name), form in FORMS.items() if kind == self.kind and re.search(name, self.text))
        return next(found, None)


class ArrayErrors:
    """Context manager that keeps NumPy's errors while it is open. Where the program has set NumPy to ignore or to raise
    an error, it is left at that."""

    def __init__(self) -> None:
        self._kept: deque[ArrayError] = deque(maxlen=KEPT)

    def __enter__(self) -> ArrayErrors:
        import numpy

        self._before: dict = dict(numpy.geterr())
        self._call = numpy.geterrcall()
        heard: dict = {name: "log" for name in NUMPYS.values() if self._before[name] == "warn"}
        numpy.seterrcall(self)
        numpy.seterr(**heard)
        return self

    def __exit__(self, *exc: object) -> None:
        import numpy

        numpy.seterr(**self._before)
        numpy.seterrcall(self._call)

    def write(self, message: str) -> None:
        """Called by NumPy, from the line that made the error."""
        text, frame = message.removeprefix("Warning: ").strip(), sys._getframe(1)
        place = place_of(_program(frame))
        if place is not None:
            kind = "overflow" if text.startswith("overflow") else "divide" if text.startswith("divide") else "invalid"
            self._kept.append(ArrayError(text, kind, place))
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        module = frame.f_globals.get("__name__")
        warnings.warn_explicit(text, RuntimeWarning, frame.f_code.co_filename, frame.f_lineno, module, registry)

    def latest(self, nan: bool) -> ArrayError | None:
        """The latest error that a NaN (or an infinity) can have come from."""
        kinds = ("invalid", "divide", "overflow") if nan else ("divide", "overflow")
        return next((one for kind in kinds for one in reversed(self._kept) if one.kind == kind), None)


def _program(frame: FrameType | None) -> FrameType | None:
    """The innermost frame at or above `frame` that is neither ours nor in an installed package."""
    frame, _ = user_frame(frame)
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARIES):
        frame, _ = user_frame(frame.f_back)
    return frame
