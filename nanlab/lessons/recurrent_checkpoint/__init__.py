"""The checkpoint after lesson 06: six dead runs without labels."""

from nanlab.lessons.recurrent_checkpoint.cases import CASES, outcome, reveal

__all__ = ["CASES", "outcome", "reveal"]
