"""What every lab stands on: its base class, and the controls that it declares."""

from nanlab.course.lab.base import Lab
from nanlab.course.lab.controls import Button, Choice, Number

__all__ = ["Button", "Choice", "Lab", "Number"]
