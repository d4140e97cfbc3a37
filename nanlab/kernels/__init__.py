"""Kernels for the project's own runs of notebooks: started quickly, in the numbers that tests need."""
