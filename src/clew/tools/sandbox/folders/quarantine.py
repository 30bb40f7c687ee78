"""Renames dangerous files that a run created, such as git hooks: otherwise they would make programs run on this
machine."""

from __future__ import annotations

import contextlib
import os
import stat

from clew.tools.sandbox.folders.folder_scan import scan_folder
from clew.tools.sandbox.folders.reachable_paths import Grants

ASIDE = ".kept-back"
"""The suffix of renamed files."""


def set_aside(grants: Grants) -> tuple[str, ...]:
    """Rename guarded files that were created since the grants were resolved, and return a note for each. Blocks.

    Files that the user changed during the run stay. In folders of libraries only repositories count, because their code
    runs anyway.
    """
    notes: list[str] = []
    for root in grants.write:
        found = scan_folder(root, since=grants.resolved_at).guarded
        for path in sorted(path for path, place in found.items() if place not in grants.guarded):
            with contextlib.suppress(FileNotFoundError):  # it was in a folder that was renamed before
                notes.append(f"{_shown(path, root)} can make programs run on this machine, and {_move(path)}")
    return tuple(notes)


def _move(path: str) -> str:
    """Rename a path, and return the outcome as text. Raises FileNotFoundError."""
    aside = _free_name(path)
    try:
        _let_change(os.path.dirname(path))
        os.rename(path, aside)
    except FileNotFoundError:
        raise
    except OSError as error:
        return f"could not be renamed ({error.strerror})"
    return f"was renamed to {ascii(os.path.basename(aside))[1:-1]}"


def _let_change(folder: str) -> None:
    """Restore the write permission of a folder, which the run may have removed."""
    mode = os.stat(folder).st_mode
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(folder, stat.S_IMODE(mode) | stat.S_IRWXU)


def _free_name(path: str) -> str:
    name, number = f"{path}{ASIDE}", 1
    while os.path.lexists(name):
        number += 1
        name = f"{path}{ASIDE}-{number}"
    return name


def _shown(path: str, root: str) -> str:
    return ascii(os.path.relpath(path, root))[1:-1]
