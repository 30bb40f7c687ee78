"""`python -m clew` is `clew`."""

import sys

from clew.cli import main

if __name__ == "__main__":
    sys.exit(main())
