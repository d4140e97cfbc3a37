"""The register of rules: which function reads the form of which operation."""

from __future__ import annotations

from collections.abc import Callable

from nanlab.detect.forms.operation import Finding, Operation

Rule = Callable[[Operation], Finding | None]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a function as the rule of the operations called `names` (bare, without a trailing underscore)."""

    def register(function: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"{name} already has a rule: {RULES[name].__name__}")
            RULES[name] = function
        return function

    return register
