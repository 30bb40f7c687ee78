"""`python -m clew` is `clew`."""

import sys

from clew.cli.process import run

if __name__ == "__main__":
    sys.exit(run())
