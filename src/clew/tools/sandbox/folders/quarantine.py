"""After a run: what it made that would make programs run on this machine is moved aside, where nothing looks for it."""

from __future__ import annotations

import contextlib
import os
import stat

from clew.tools.sandbox.folders.folder_scan import scan_folder
from clew.tools.sandbox.folders.reachable_paths import Grants

ASIDE = ".kept-back"
"""Ends the names of what was moved aside."""


def set_aside(grants: Grants) -> tuple[str, ...]:
    """Move aside what was made since the grants were resolved; what the user changed meanwhile stays. Blocks.

    A note for each, which names it from its folder on. In folders of libraries only repositories count: who uses them
    runs what is in them anyway.
    """
    notes: list[str] = []
    for root in grants.write:
        found = scan_folder(root, since=grants.resolved_at).guarded
        for path in sorted(path for path, place in found.items() if place not in grants.guarded):
            with contextlib.suppress(FileNotFoundError):  # lay in what was moved before
                notes.append(f"{_shown(path, root)} can make programs run here, and {_move(path)}")
    return tuple(notes)


def _move(path: str) -> str:
    """The outcome of moving a path. Raises FileNotFoundError."""
    aside = _free_name(path)
    try:
        _let_change(os.path.dirname(path))
        os.rename(path, aside)
    except FileNotFoundError:
        raise
    except OSError as error:
        return f"could not be moved aside ({error.strerror})"
    return f"was moved aside, to {ascii(os.path.basename(aside))[1:-1]}"


def _let_change(folder: str) -> None:
    """The run may have taken the right to write from a folder."""
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
