"""The folder `.clew`: where it is, and which of its files belong to this machine only."""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path

from clew.files import inside, refuse_links

FOLDER = ".clew"
CLEW_FILES = ("trail.db*", "code.db*", "keys*", "credential*", "secrets*", "edits*", "large-folder")
"""Patterns of derived and secret files that Clew writes in the folder."""
MACHINE_ONLY = ("*.db*", *CLEW_FILES)
"""Patterns of files in the folder that belong to this machine only: those, and copies of trails with their keys. git
ignores them, and no tool of an agent reads them."""
_WRITTEN = (*MACHINE_ONLY, "*.lock")
_TEMPORARY = ("/tmp", "/var/tmp") if os.name == "posix" else ()


def find_folder(start: Path) -> Path:
    """Return the `.clew` of the git repository around `start`, else the nearest one upward, else that of `start`.

    Inside a repository a nearer `.clew` wins, and one above the repository is ignored. The search stops below the home
    folder, temporary folders and the root of the file system. It skips folders of other users, who could have put
    settings there.
    """
    if is_broad(start) or os.path.isdir(start / FOLDER) or os.path.exists(start / ".git"):
        return Path(FOLDER)
    for place in takewhile(lambda each: not is_broad(each), start.parents):
        if os.path.isdir(place / FOLDER) and _is_mine(place / FOLDER):
            return place / FOLDER
        if os.path.exists(place / ".git"):
            return place / FOLDER if _is_mine(place) else Path(FOLDER)
    return Path(FOLDER)


def is_broad(place: Path) -> bool:
    """Whether a folder contains many projects instead of being one: the root of the file system, the home folder, the
    folder of all homes, and the folders for temporary files."""
    real, home = Path(os.path.realpath(place)), Path(os.path.realpath(os.path.expanduser("~")))
    holds_homes = len(real.parts) == 2 and home.is_relative_to(real)
    temporary = {*_TEMPORARY, *(os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP"))} - {""}
    return real in (Path(real.anchor), home, *map(Path, map(os.path.realpath, temporary))) or holds_homes


def check_own_files(folder: Path) -> None:
    """Check the folder and the files that Clew writes in it, before it opens any of them. Raises ReadOnly if one of
    the files is a link, or if the folder is a link out of its project, because a cloned folder could contain one."""
    if folder.name == FOLDER and folder.is_symlink():
        inside(folder, folder.absolute().parent)
    refuse_links(folder, _WRITTEN)


def _is_mine(folder: Path) -> bool:
    return os.name != "posix" or folder.stat().st_uid == os.geteuid()
