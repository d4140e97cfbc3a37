"""The checkpoint after lesson 06: six dead runs without labels."""

from nanlab.lessons.recurrent_checkpoint.cases import CASES, Case, log, outcome, reveal

__all__ = ["CASES", "Case", "log", "outcome", "reveal"]
