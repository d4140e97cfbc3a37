"""Kernels for the project's own runs of notebooks, forked from a process that has torch loaded.

A fresh kernel spends two seconds on starting Python, importing torch and making a first optimizer; a forked one a few
tenths. Linux only; elsewhere, and whenever a request asks for something unusual, an ordinary kernel is started.

The pieces: `server` waits, warm, and forks; `child` makes a fork look like a fresh kernel; `client` starts a server and
asks it; `provisioner` is what Jupyter calls; `manager` is what the project's own code calls.
"""
