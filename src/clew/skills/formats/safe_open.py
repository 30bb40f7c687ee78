"""Opens files of a tree so that no link can lead out of it, even if the tree changes at the same time.

A path is opened folder by folder, without following links. Only regular files are read, up to a size limit.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from clew.errors import FormatError
from clew.files import OPEN_FOLDER, STEPWISE, open_inside

_CHUNK = 262_144
HAS_PROGRAM_BIT = os.name != "nt"
"""Whether files have an executable bit. On Windows, the file extension decides."""
_ANY_EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


Stamp = tuple[int, int, int, int, int]
"""Device, inode, size and times of a file. If all of them are equal, the file has not changed."""


class Root:
    """The real folder that all paths are relative to. Paths use `/`, are normal, and have no `..`."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)

    def absolute(self, path: str) -> str:
        return os.path.join(self.path, *path.split("/")) if path else self.path

    def relative(self, absolute: str) -> str | None:
        """Convert a real path to one relative to the root, with `/`; None if it is outside."""
        if absolute == self.path:
            return ""
        above = self.path if self.path.endswith(os.sep) else self.path + os.sep
        return absolute[len(above) :].replace(os.sep, "/") if absolute.startswith(above) else None

    def resolve(self, path: str) -> str:
        """Return the real path of `path`, relative to the root. `path` may have links and `..`.

        Raises FormatError if it leads out of the root, in a cycle, or to nothing.
        """
        try:
            found = self.relative(os.path.realpath(self.absolute(path), strict=True))
        except (OSError, ValueError) as error:
            raise FormatError(path, _reason(error)) from None
        if found is None:
            raise FormatError(path, "leads out of the root")
        return found

    def link_target(self, path: str) -> str:
        """Return the target that is written in a link; empty if `path` is not a link."""
        try:
            return os.readlink(self.absolute(path))
        except (OSError, ValueError):
            return ""

    @contextmanager
    def listing(self, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Iterate over the entries of a real folder while it is open. Raises FormatError."""
        try:
            folder: int | str = open_inside(self.path, path, OPEN_FOLDER) if STEPWISE else self.absolute(path)
        except OSError as error:
            raise FormatError(path, _reason(error)) from None
        try:
            with os.scandir(folder) as entries:
                yield entries
        except OSError as error:
            raise FormatError(path, _reason(error)) from None
        finally:
            if isinstance(folder, int):
                os.close(folder)

    def stamp(self, path: str) -> Stamp | None:
        """Return a stamp that changes with the file, or None when it cannot be read."""
        try:
            found = os.stat(self.absolute(path), follow_symlinks=False)
        except (OSError, ValueError):
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def is_program(self, path: str) -> bool:
        """Whether a real file has an executable bit. Always False on systems without such bits."""
        try:
            return HAS_PROGRAM_BIT and bool(
                os.stat(self.absolute(path), follow_symlinks=False).st_mode & _ANY_EXECUTABLE
            )
        except (OSError, ValueError):
            return False

    def read(self, path: str, limit: int) -> bytes:
        """Read a real file of at most `limit` bytes. Raises FormatError."""
        return b"".join(self._chunks(path, limit))

    def load(self, path: str, limit: int) -> bytes:
        """Read the file below the root that `path` leads to; `path` may have links and `..`. Raises FormatError."""
        return self.read(self.resolve(path), limit)

    def digest(self, path: str, limit: int) -> tuple[bytes, int]:
        """Return the SHA-256 of a real file of at most `limit` bytes, and its size. Raises FormatError."""
        found, size = hashlib.sha256(), 0
        for chunk in self._chunks(path, limit):
            found.update(chunk)
            size += len(chunk)
        return found.digest(), size

    def _chunks(self, path: str, limit: int) -> Iterator[bytes]:
        """Read a regular file in chunks. Stops with an error if it grows over the limit."""
        try:
            file = open_inside(self.path, path)
        except (OSError, ValueError) as error:
            raise FormatError(path, _reason(error)) from None
        try:
            about = os.fstat(file)
            if not stat.S_ISREG(about.st_mode):
                raise FormatError(path, "is not a regular file")
            room = limit if about.st_size <= limit else -1
            while room >= 0 and (chunk := os.read(file, _CHUNK)):
                room -= len(chunk)
                yield chunk
            if room < 0:
                raise FormatError(path, f"has more than {limit:,} bytes")
        except OSError as error:
            raise FormatError(path, _reason(error)) from None
        finally:
            os.close(file)


def _reason(error: OSError | ValueError) -> str:
    code = error.errno if isinstance(error, OSError) else None
    reasons = {
        errno.ENOENT: "does not exist",
        errno.ELOOP: "is circular, or became a link while Clew read it",
        errno.EACCES: "cannot be read: permission denied",
        errno.EPERM: "cannot be read: permission denied",
        errno.ENXIO: "is not a regular file",
        errno.ENOTDIR: "changed while Clew read it",
        errno.ENAMETOOLONG: "has too long a path",
    }
    return reasons.get(code or 0, "cannot be read")
