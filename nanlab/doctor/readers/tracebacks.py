"""Which lines belong to a traceback or a warning: frames, the code under them, the exception at the end."""

import re

_FRAME = re.compile(
    r"^\W{0,12}(?:\[?rank\d{1,4}\]?:? ?)?\s{0,8}File \"?([^\"\n]{1,400})\"?, line (\d{1,7})"
    r"|^\s{0,4}(?:Cell In|Input In) ?\["
)
_ERROR = re.compile(
    r"^(?:\[?rank\d{1,4}\]?:? )?(?:[A-Za-z_][\w]{0,60}\.){0,8}[A-Z]\w{0,60}"
    r"(?:Error|Exception|Interrupt|Warning|Exit)\b(?::|$)"
)
_WARNED = re.compile(r":\d{1,7}: \w{0,40}Warning: ")
_STARTS = ("Traceback (most recent call last)", "Traceback of forward call")


class Traceback:
    """Follows tracebacks line by line."""

    def __init__(self) -> None:
        self._open = False
        self._code_next = False
        self._warned = False  # the last line was a Python warning

    def place(self, text: str) -> str:
        """``frame``, ``code``, ``exception`` or ``""``: what the next line is."""
        if any(start in text for start in _STARTS):
            self._open = True
            return ""
        if _FRAME.match(text):
            self._open = self._code_next = True
            return "frame"
        if self._warned and text[:1] == " ":
            self._warned = False
            return "code"  # the source line under a warning
        self._warned = _WARNED.search(text) is not None
        return self._inside(text) if self._open else "exception" if _ERROR.match(text) else ""

    def _inside(self, text: str) -> str:
        marks = text.lstrip().startswith(("^", "~"))
        if _ERROR.match(text):
            self._open = self._code_next = False
            return "exception"
        if (self._code_next and text[:1] in " \t[") or marks:
            self._code_next = marks
            return "code"
        self._code_next = False
        self._open = text[:1] in " \t"
        return ""
