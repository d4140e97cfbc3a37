"""What ``python3 start.py`` does: a .venv with everything in it, then JupyterLab or the tests.

Runs on the standard library alone, before anything is installed; imports nothing else of nanlab.
"""
