"""Finds the first non-finite value of a training step.

Rooms, from the ground up; each imports from those before it: `state`, `forms`, `trace`, `origin`, `replay`, `guarding`,
`scripts`; and `magic`, the cell magic.
"""
