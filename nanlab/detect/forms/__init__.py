"""The forms in which a non-finite value is born, what is known of operations, and the reading of a form from both."""

from nanlab.detect.forms.known import Known, known
from nanlab.detect.forms.names import function_of
from nanlab.detect.forms.operation import Reading
from nanlab.detect.forms.read import read
from nanlab.detect.forms.table import FORMS, public, row, sentence, suspect

__all__ = ["FORMS", "Known", "Reading", "function_of", "known", "public", "read", "row", "sentence", "suspect"]
