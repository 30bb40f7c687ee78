"""The content of files and its identity: the id that git gives to a blob, computed here, so that it holds for what is
on the disk now, committed or not, in a repository or not."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from typing import NamedTuple

from clew.files import open_inside
from clew.knowledge.code.files import Status, status_of

MAX_BYTES = 2_000_000
"""Larger files are known by name only: people do not write them."""


class Content(NamedTuple):
    """A file as it was read. `looked_ns` is when reading began; 0 when the file changed meanwhile. A file that is not
    to be read has no blob, and `left_out` says why."""

    path: str
    status: Status
    looked_ns: int
    blob: str
    body: bytes = b""
    left_out: str = ""


def blob_id(body: bytes) -> str:
    """What `git hash-object` prints, 40 hexadecimal digits."""
    digest = hashlib.sha1(b"blob %d\0" % len(body), usedforsecurity=False)
    digest.update(body)
    return digest.hexdigest()


def read_content(root: str, path: str) -> Content | None:
    """A file below a real root, or None when it is gone or no regular file. Links are followed nowhere on the way."""
    looked_ns = time.time_ns()
    try:
        descriptor = open_inside(root, path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        return _unreadable(root, path, looked_ns, error)
    try:
        return _read(descriptor, path, looked_ns)
    finally:
        os.close(descriptor)


def _read(descriptor: int, path: str, looked_ns: int) -> Content | None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        return None
    status = status_of(found)
    if status.size > MAX_BYTES:
        return Content(path, status, looked_ns, "", left_out=f"has over {MAX_BYTES:,} bytes")
    try:
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            body = file.read(MAX_BYTES + 1)
    except OSError as error:
        return Content(path, status, looked_ns, "", left_out=f"cannot be read ({error.strerror})")
    is_whole = status_of(os.fstat(descriptor)) == status and len(body) == status.size
    return Content(path, status, looked_ns if is_whole else 0, blob_id(body), body)


def _unreadable(root: str, path: str, looked_ns: int, error: OSError) -> Content | None:
    try:
        found = os.lstat(f"{root}/{path}")
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Content(path, status_of(found), looked_ns, "", left_out=f"cannot be read ({error.strerror})")
