"""Readers turn the lines of a log, in any layout, into events: counters, named values, tracebacks, ranks.

One generic reader serves every framework; `dedicated` holds the few layouts that it was shown to misread.
"""

from nanlab.doctor.readers.event import Event, Value
from nanlab.doctor.readers.generic import Reader

__all__ = ["Event", "Reader", "Value"]
