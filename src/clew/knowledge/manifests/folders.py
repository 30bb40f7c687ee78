"""What is in a folder."""

from __future__ import annotations

import os


def list_names(folder: str) -> list[str]:
    """The names in a folder, sorted; none for one that is not there or may not be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
