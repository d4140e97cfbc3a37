#!/usr/bin/env python3
"""Set up the course and open it.

    python3 start.py                 set up what is missing, then open JupyterLab
    python3 start.py --no-browser    the same without a browser window; the address is printed
    python3 start.py --port 9000     on a port of your choice
    python3 start.py --check         say what would be done, and do nothing
    python3 start.py test            set up what the tests need and run them; arguments for pytest may follow

Everything goes into the folder .venv beside this file; delete it to start over. Needs Python 3.11 or newer, no more.
The work is done in nanlab/setup; what stands here any Python can read, so that an old one is told what is missing.
"""

import os
import sys

OLDEST = (3, 11)


def too_old():
    """What to say to a Python that is too old; nothing to one that will do."""
    if sys.version_info >= OLDEST:
        return ""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    names = ["python3." + str(minor) for minor in range(19, 10, -1)]
    newer = [name for name in names if any(os.access(folder + os.sep + name, os.X_OK) for folder in folders)]
    remedy = "Run: " + newer[0] + " start.py" if newer else "Install a newer one from your system or from python.org."
    version = ".".join(map(str, sys.version_info[:2]))
    return "This is Python " + version + "; the course needs 3.11 or newer. " + remedy


if __name__ == "__main__":
    if too_old():
        sys.exit(too_old())
    try:
        from nanlab.setup.command import main

        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again to go on.")
