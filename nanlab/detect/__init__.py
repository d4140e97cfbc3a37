"""Finds the first non-finite value of a training step: guard, scene, replay, hunt, origin, form, confirm."""
