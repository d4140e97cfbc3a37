"""Labs: turn a knob of a failure and see at once what becomes of the run. One lab a file, over ``nanlab.failures``."""

from nanlab.labs.base import Lab
from nanlab.labs.controls import Button, Choice, Number
from nanlab.labs.explosion import ExplosionLab
from nanlab.labs.half import HalfLab
from nanlab.labs.logs import LogLab
from nanlab.labs.number import NumberLab
from nanlab.labs.padding import PaddingLab
from nanlab.labs.recurrent import RecurrentLab
from nanlab.labs.sheet import SheetLab
from nanlab.labs.softmax import SoftmaxLab
from nanlab.labs.whisper import WhisperLab

__all__ = [
    "Button",
    "Choice",
    "ExplosionLab",
    "HalfLab",
    "Lab",
    "LogLab",
    "Number",
    "NumberLab",
    "PaddingLab",
    "RecurrentLab",
    "SheetLab",
    "SoftmaxLab",
    "WhisperLab",
]
