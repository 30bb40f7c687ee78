"""The working folder of an agent. Paths cannot lead out of it, nor to files that usually hold secrets.

A path is checked as written and as a real path, then opened folder by folder without following links. A path that
becomes a link in between is refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from clew.config import FOLDER, MACHINE_ONLY
from clew.errors import ClewError, InvalidInput, NotFound, StorageFull, ToolFailure
from clew.fences import clean
from clew.files import OPEN_FILE, OPEN_FOLDER, STEPWISE, open_inside, replace_file
from clew.secrecy import is_secret_file
from clew.tools.protected_names import GIT_NAME, GUARDED_NAMES
from clew.trust import printable

DENIED = (
    "~/.ssh",
    "~/.aws",
    "~/.gnupg",
    "~/.config/gcloud",
    "~/.kube",
    "~/.docker/config.json",
    ".ssh",
    ".aws",
    ".gnupg",
    ".env",
    *(f"{FOLDER}/{name}" for name in MACHINE_ONLY),
)
"""Paths that no tool reads or writes, with everything below them: names at any depth, or paths from the home folder.
Tools do not read files with names for secrets either (`is_secret_file`)."""
GUARDED = (GIT_NAME, *sorted(GUARDED_NAMES))
"""Paths that tools may read but not write, because settings and hooks in them make programs run."""

MAX_PATH = 4_096
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}

Stamp = tuple[int, int, int, int, int]
"""Device, inode, size and times of a file. If all of them are equal, the file has not changed."""


def is_secret_path(path: str) -> bool:
    """Whether a path, relative to any folder, is one of `DENIED` or has a name for secrets."""
    return _default_denials().match(path, "") or _has_secret_name(path)


def _has_secret_name(path: str) -> bool:
    return any(map(is_secret_file, _folded(path).split("/")))


@lru_cache(1)
def _default_denials() -> _Patterns:
    return _Patterns(DENIED)


def stamp_of(about: os.stat_result) -> Stamp:
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


class WorkingFolder:
    """A real folder. Methods block. Paths use `/` and are relative to the folder, or absolute and within it; `locate`
    returns real paths. Safe to use from several threads."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._given = os.path.abspath(root)
        self.root = os.path.realpath(root)
        self._denied = _Patterns(DENIED)
        self._guarded = _Patterns(GUARDED)
        self.changing = threading.RLock()
        """Hold it to read a file, change it and write it back."""

    def locate(self, path: str, *, to_write: bool = False) -> str:
        """Return the real path of a path, relative to the root; empty for the root itself. The file need not exist.

        Raises InvalidInput if it leads out of the folder, ToolFailure of the kind permission if it is denied.
        """
        plain = self._plain(path)
        try:
            real = os.path.realpath(os.path.join(self.root, plain))
        except (OSError, ValueError):
            raise InvalidInput("path", f"{_shown(path)} is not a path") from None
        found = self._relative(real)
        if found is None:
            raise _outside(path, "a link leads out of the folder")
        if self.is_denied(plain) or self.is_denied(found):
            hint = "Ask the user for the information"
            raise ToolFailure("permission", f"tools may not use {_shown(path)}: it usually holds secrets", hint=hint)
        if to_write and (self._guarded.match(plain, self.root) or self._guarded.match(found, self.root)):
            hint = "Ask the user to change it"
            raise ToolFailure("permission", f"tools may not write {_shown(path)}", hint=hint)
        return found

    def resolve(self, path: str) -> Path:
        """Return the absolute real path. Raises the errors of `locate`."""
        return Path(self.root, self.locate(path))

    def is_denied(self, plain: str) -> bool:
        """Whether tools may not use a path relative to the root."""
        return self._denied.match(plain, self.root) or _has_secret_name(plain)

    @contextlib.contextmanager
    def opened(self, real: str) -> Iterator[tuple[BinaryIO, os.stat_result]]:
        """Yield an open regular file and its stat result. Raises NotFound, InvalidInput, ToolFailure."""
        try:
            descriptor = open_inside(self.root, real, OPEN_FILE)
        except (OSError, ValueError) as error:
            raise self._failure(real, error) from None
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            os.close(descriptor)
            kind = _KINDS.get(stat.S_IFMT(about.st_mode), "no regular file")
            hint = "Name a file in it; glob lists them" if kind == "a folder" else "Only regular files are read"
            raise InvalidInput("path", f"{_shown(real)} is {kind}", hint=hint)
        with os.fdopen(descriptor, "rb") as file:
            try:
                yield file, about
            except OSError as error:
                raise self._failure(real, error) from None

    def read(self, real: str, limit: int) -> tuple[bytes, os.stat_result]:
        """Read a file of at most `limit` bytes, and return its stat result from before. Raises the errors of `opened`,
        and InvalidInput for a larger file."""
        with self.opened(real) as (file, about):
            content = file.read(limit + 1)
            if len(content) > limit:
                raise InvalidInput("path", f"{_shown(real)} has more than {limit:,} bytes")
            return content, about

    def exists(self, real: str) -> bool:
        return os.path.lexists(os.path.join(self.root, real))

    def is_folder(self, real: str) -> bool:
        """Whether a real path is a folder, and not a link to one."""
        try:
            os.close(open_inside(self.root, real, OPEN_FOLDER))
        except (OSError, ValueError):
            return False
        return True

    def write(self, real: str, content: bytes, *, expected: Stamp | None = None) -> None:
        """Replace the content of a file atomically and durably. Missing folders are created, and the permissions of the
        file stay. With `expected`, a file that has changed is not written.

        Raises InvalidInput, ToolFailure, StorageFull.
        """
        above, _, name = real.rpartition("/")
        try:
            if not STEPWISE:
                place = Path(self.root, real)
                place.parent.mkdir(parents=True, exist_ok=True)
                replace_file(place, content)
                return
            folder = self._open_folders(above)
            try:
                _replace(folder, name, content, expected, real)
            finally:
                os.close(folder)
        except (OSError, ValueError) as error:
            raise self._failure(real, error) from None

    def _open_folders(self, path: str) -> int:
        """Return a descriptor of a folder, which is created if it is missing."""
        place = os.open(self.root, OPEN_FOLDER)
        try:
            for name in filter(None, path.split("/")):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=place)
                inner = os.open(name, OPEN_FOLDER, dir_fd=place)
                os.close(place)
                place = inner
        except BaseException:
            os.close(place)
            raise
        return place

    def _plain(self, path: str) -> str:
        """Return the path relative to the root, without following links. Raises InvalidInput."""
        if "\0" in path or len(os.fsencode(_encodable(path))) > MAX_PATH:
            raise InvalidInput("path", f"{_shown(path)} is not a path")
        if path == "~" or path.startswith("~/"):
            raise _outside(path, "it starts at the home folder")
        if os.path.isabs(path):
            path = self._within(path)
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise _outside(path, "it goes up with `..`")
        return "/".join(parts)

    def _within(self, path: str) -> str:
        for root in (self.root, self._given):
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return path[len(root) :]
        raise _outside(path, "it is an absolute path outside the folder")

    def _relative(self, real: str) -> str | None:
        if real == self.root:
            return ""
        above = self.root.rstrip(os.sep) + os.sep
        return real[len(above) :].replace(os.sep, "/") if real.startswith(above) else None

    def _failure(self, real: str, error: OSError | ValueError) -> ClewError:
        code = error.errno if isinstance(error, OSError) else None
        if code == errno.ENOENT:
            return self._missing(real)
        if code == errno.ENOSPC:
            return StorageFull(f"no space left to write {_shown(real)}")
        if code in (errno.EACCES, errno.EPERM, errno.EROFS):
            hint = "Ask the user to change its permissions"
            return ToolFailure("permission", f"permission denied for {_shown(real)}", hint=hint)
        reasons = {
            errno.ELOOP: "is a circular link, or became a link during the call",
            errno.ENOTDIR: "leads through a file that is not a folder",
            errno.EISDIR: "is a folder",
            errno.ENXIO: "is not a regular file",
            errno.ENAMETOOLONG: "has too long a name",
        }
        return InvalidInput("path", f"{_shown(real)} {reasons.get(code or 0, 'cannot be used')}")

    def _missing(self, real: str) -> NotFound:
        """Build the error for a missing file, with a suggestion."""
        above, _, name = real.rpartition("/")
        error = NotFound("file", printable(real, 300))
        try:
            names = [each for each in os.listdir(os.path.join(self.root, above)) if not self.is_denied(each)]
        except OSError:
            names = []
        close = get_close_matches(name, names[:2_000], 1)
        where = f"{above}/{close[0]}" if above and close else "".join(close)
        error.hint = f"Did you mean {_shown(where)}?" if close else "Find files with glob"
        return error


def _replace(folder: int, name: str, content: bytes, expected: Stamp | None, real: str) -> None:
    """Write a draft beside a file in an open folder, then rename it."""
    before = _look(folder, name)
    if before is not None and not stat.S_ISREG(before.st_mode):
        raise InvalidInput("path", f"{_shown(real)} is not a regular file")
    draft = f".{secrets.token_hex(8)}.draft"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    file = os.open(draft, flags, 0o666, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(content)
            out.flush()
            if before is not None:
                os.fchmod(out.fileno(), stat.S_IMODE(before.st_mode))
            os.fsync(out.fileno())
        now = _look(folder, name)
        if expected is not None and (now is None or stamp_of(now) != expected):
            raise changed_meanwhile(real)
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft, dir_fd=folder)
        raise


def _look(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def changed_meanwhile(path: str) -> InvalidInput:
    return InvalidInput(
        "path", f"{_shown(path)} has changed since you read it", hint="Read it again, then make the change"
    )


class _Patterns:
    """Names and paths at any depth, and paths in the home folder, each with everything below."""

    def __init__(self, patterns: Sequence[str]) -> None:
        homes = [os.path.realpath(os.path.expanduser(each)) for each in patterns if each.startswith(("~", "/"))]
        self._absolute = tuple(_folded(each) for each in homes)
        inner = [_as_expression(_folded(each)) for each in patterns if not each.startswith(("~", "/"))]
        self._relative = re.compile(rf"(?:.*/)?(?:{'|'.join(inner)})(?:/.*)?", re.S) if inner else None

    def match(self, plain: str, root: str) -> bool:
        folded = _folded(plain)
        if self._relative is not None and self._relative.fullmatch(folded):
            return True
        whole = f"{_folded(root)}/{folded}"
        return any(whole == each or whole.startswith(each + "/") for each in self._absolute)


def _as_expression(pattern: str) -> str:
    return re.escape(pattern.strip("/")).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")


def _folded(path: str) -> str:
    """Normalise a path as file systems do that ignore case or invisible characters."""
    return clean(path).casefold()


def _encodable(path: str) -> str:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise InvalidInput("path", f"{_shown(path)} is not a path") from None
    return path


def _outside(path: str, why: str) -> InvalidInput:
    return InvalidInput(
        "path", f"{_shown(path)}: {why}", hint="Write paths relative to the working folder, as glob does"
    )


def _shown(path: str) -> str:
    return printable(path, 300).encode(errors="backslashreplace").decode() or "the working folder"
