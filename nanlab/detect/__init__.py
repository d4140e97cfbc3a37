"""Finds the first non-finite value of a training step.

`report`, `hunt`, `audit` and `magic` are what a user meets; the rooms below them, from the ground up: `tracing` and
`forms`, `explaining`, `confirming`, `scenes`, `guarding`, `scripts`.
"""
