"""Runs the `clew` command for `python -m clew`."""

import sys

from clew.cli.process import run

if __name__ == "__main__":
    sys.exit(run())
