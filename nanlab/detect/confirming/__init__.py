"""Interventions: the step again with one thing changed, to show that the origin was the cause."""
