"""What a command reads (a file, standard input, an editor), as against what was typed on its line.

A command that was typed wrongly exits with 2. Content that cannot be used is a failure of the work, which exits with 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clew.errors import ClewError, InvalidInput


@contextmanager
def reading_content() -> Iterator[None]:
    """Around work on content: InvalidInput becomes a plain ClewError in the same words."""
    try:
        yield
    except InvalidInput as error:
        raise ClewError(error.message, hint=error.hint) from error
