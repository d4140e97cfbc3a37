"""Broken training runs, one module each, with knobs. The one source for lessons, labs, exercises and tests."""
