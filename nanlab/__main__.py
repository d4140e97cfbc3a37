from nanlab.cli import entry

entry()
