"""The forms in which a non-finite value is born, and the reading of a form from an operation and its operands."""

from nanlab.detect.forms.operation import Finding
from nanlab.detect.forms.read import read
from nanlab.detect.forms.table import FORMS, public, row, sentence, suspect

__all__ = ["FORMS", "Finding", "public", "read", "row", "sentence", "suspect"]
