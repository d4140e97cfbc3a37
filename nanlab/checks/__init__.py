"""What exercise cells call: ``from nanlab import check``, then ``check.rate(rate)``. One function a question.

A check prints one fixed line when the answer is right and raises `CheckFailed` when it is not.
"""

from nanlab.checks.explosion import data, first_bad, is_bad, rate
from nanlab.checks.verdict import CheckFailed

__all__ = ["CheckFailed", "data", "first_bad", "is_bad", "rate"]
