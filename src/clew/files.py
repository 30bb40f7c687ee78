"""Writes files in folders that others may have prepared: atomically, by one writer at a time, and never through a link
that leads elsewhere."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from clew.errors import ReadOnly

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
OPEN_FILE = _READ | _NO_LINK | _NO_WAIT
OPEN_FOLDER = _READ | _NO_LINK | getattr(os, "O_DIRECTORY", 0)
STEPWISE = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
"""Whether folders can be opened one by one, each relative to its parent."""


@contextlib.contextmanager
def locked(path: Path, *, waits: bool = True) -> Iterator[None]:
    """Hold the lock beside a file; it is free again when the process ends. Raises OSError, without `waits` also if
    another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | _NO_LINK | _NO_WAIT, 0o600)
    try:
        take_lock(lock, waits=waits)
        yield
    finally:
        os.close(lock)


def take_lock(file: int, *, waits: bool = True) -> None:
    """Lock an open file until it is closed. Waits while another process has the lock, or raises OSError."""
    if sys.platform == "win32":
        import msvcrt  # there only

        msvcrt.locking(file, msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # everywhere else

        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))


def replace_file(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Replace a file atomically and durably: a reader sees either the old or the new content. Raises OSError."""
    draft = _write_draft(path, content, mode)
    try:
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_once(path: Path, content: bytes) -> None:
    """Write a file for its owner alone that appears whole or not at all. A file that is there already stays unchanged.
    Raises OSError."""
    move_if_free(_write_draft(path, content, 0o600), path)


def move_if_free(draft: Path, path: Path) -> bool:
    """Move a file to a path. If there is a file already, remove the draft and return False. Raises OSError."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if path.exists():
            return False
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return True


def _write_draft(path: Path, content: bytes, mode: int) -> Path:
    """Write a file beside a path durably, and return its path."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def create_file(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a new file. Raises FileExistsError if the path exists, even as a link, and OSError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
        out.write(content)


def read_file(path: Path, limit: int | None = None) -> bytes:
    """Return the content of a regular file. A pipe does not make the caller wait.

    Raises OSError if it cannot be read or has more than `limit` bytes.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | _NO_WAIT), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is not a regular file")
        content = file.read() if limit is None else file.read(limit + 1)
    if limit is not None and len(content) > limit:
        raise OSError(0, f"it has more than {limit:,} bytes")
    return content


def refuse_links(folder: Path, names: Collection[str]) -> None:
    """Check the files and folders that Clew itself writes in a folder, because an untrusted folder may contain links in
    their place. Checks the entries with one of these names (`*` matches any beginning or end), and the entries of such
    folders. Raises ReadOnly if one is neither a regular file nor a folder, because Clew would write elsewhere.
    """
    for name in _names(folder):
        if any(fnmatchcase(name, each) for each in names):
            refuse_link(folder / name)
            for inner in _names(folder / name):
                refuse_link(folder / name / inner)


def refuse_link(path: Path) -> None:
    """Check one file or folder as `refuse_links` does. It need not be there."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        what = "is a link: Clew would write elsewhere" if stat.S_ISLNK(mode) else "is not a regular file"
        raise ReadOnly(f"{path} {what}", hint="Remove it; Clew makes a new one")


def _names(folder: Path) -> list[str]:
    """The names in a folder; empty if it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def inside(path: Path, root: Path) -> Path:
    """The real path of a file below `root`, which need not exist. Raises ReadOnly if links lead out of the root."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(root)):
        raise ReadOnly(f"{path} is not written: a link leads out of {root}", hint="Remove the link")
    return real


def open_inside(root: str, path: str, flags: int = OPEN_FILE) -> int:
    """Open a real path below a real root, folder by folder, without following links. The descriptor always refers to a
    file below the root, even if the tree changes during the call. `path` uses `/`, is normal and has no `..`; empty is
    the root. Raises OSError, and ValueError for an invalid path."""
    if not STEPWISE:
        return _open_at_once(os.path.join(root, *path.split("/")) if path else root, flags)
    *folders, last = path.split("/") if path else ["."]
    place = os.open(root, OPEN_FOLDER)
    try:
        for name in folders:
            inner = os.open(name, OPEN_FOLDER, dir_fd=place)
            os.close(place)
            place = inner
        return os.open(last, flags, dir_fd=place)
    finally:
        os.close(place)


def _open_at_once(absolute: str, flags: int) -> int:
    """Fallback for systems that cannot open folders one by one: open the path, then check that its real path is the
    same."""
    file = os.open(absolute, flags)
    if os.path.realpath(absolute) != absolute:
        os.close(file)
        raise OSError(errno.ELOOP, "is a link")
    return file
