"""The log doctor: from the text of a dead run to ranked suspects, each with the lines that speak for it.

`source` opens, `sieve` chooses lines, `readers` make events, `signatures` weigh them, `report` shows. Lesson 11
teaches it.
"""

from nanlab.doctor.diagnosis import Diagnosis, diagnose, judge, read
from nanlab.doctor.source import NotALog

__all__ = ["Diagnosis", "NotALog", "diagnose", "judge", "read"]
