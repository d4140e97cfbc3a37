"""Watches every operation of a step and keeps what is known of those with a non-finite result."""
