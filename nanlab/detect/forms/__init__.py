"""The forms in which a non-finite value is born, and the reading of a form from an operation and its operands."""

from nanlab.detect.forms.read import Finding, read
from nanlab.detect.forms.table import FORMS, sentence

__all__ = ["FORMS", "Finding", "read", "sentence"]
