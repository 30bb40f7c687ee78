"""The content of files: its identity, which is git's blob id computed here so that it holds for uncommitted files too,
and its text without keys."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from typing import NamedTuple

from clew.files import open_inside
from clew.knowledge.code.files import Status, status_of
from clew.knowledge.code.languages.detect import language_of
from clew.knowledge.code.passages import format_of
from clew.knowledge.code.secret_files import BINARY, is_text, looks_secret
from clew.secrecy import mask_in_place, may_hold_keys

MAX_BYTES = 2_000_000
"""Larger files are not read: people do not write them."""
_HEAD_BYTES = 4_096


class Content(NamedTuple):
    """A file as it was read. `looked_ns` is the time before reading; 0 if the file changed meanwhile. A file that is
    not read has no blob, and `left_out` says why."""

    path: str
    status: Status
    looked_ns: int
    blob: str
    body: bytes = b""
    left_out: str = ""


class Job(NamedTuple):
    """A content to parse, into facts and words, or into the summary of its flow."""

    body: bytes
    language: str
    is_flow: bool = False


class Readable(NamedTuple):
    """A file to index: its language, or empty, and its text without keys. `left_out` says why it has no text."""

    content: Content
    language: str
    text: str = ""
    left_out: str = ""

    @property
    def job(self) -> Job:
        return Job(self.text.encode("utf-8", errors="replace"), self.language)


def blob_id(body: bytes) -> str:
    """The output of `git hash-object`, 40 hexadecimal digits."""
    digest = hashlib.sha1(b"blob %d\0" % len(body), usedforsecurity=False)
    digest.update(body)
    return digest.hexdigest()


def read_content(root: str, path: str) -> Content | None:
    """Read a file below a real root, or None if it is gone or no regular file. Follows no links on the way."""
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
    reason = f"cannot be read ({error.strerror})"
    is_file = stat.S_ISREG(found.st_mode)
    return Content(path, status_of(found), looked_ns, "", left_out=reason) if is_file else None


def make_readable(content: Content) -> Readable:
    """The text of a file to index. Keys in it are masked, and lines keep their numbers."""
    left_out = content.left_out or ("" if is_text(content.body) else BINARY)
    left_out = left_out or looks_secret(content.path, content.body)
    if left_out:
        return Readable(content, "", left_out=left_out)
    language = language_of(content.path, content.body[:_HEAD_BYTES]) or format_of(content.path)
    return Readable(content, language, readable_text(content.body))


def readable_text(body: bytes) -> str:
    """The text of a file without keys; lines keep their numbers. Bytes that are not UTF-8 are read as Latin-1."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return mask_in_place(body.decode("utf-16", errors="replace"))
    try:
        text = body.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("latin-1")
    return mask_in_place(text) if may_hold_keys(text) else text
