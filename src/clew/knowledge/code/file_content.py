"""The content of files: its identity, which is git's blob id computed here so that it holds for uncommitted files too,
its text without keys, and the commits of its lines. Binary files, keys, and files with nothing but secrets are left
out. Code that mentions passwords stays; keys in it are masked."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import stat
import time
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from clew.errors import InvalidInput, NotFound
from clew.files import open_inside
from clew.knowledge.code.files import status_of
from clew.knowledge.code.languages.detect import language_of
from clew.knowledge.code.models import FileStatus, file_of
from clew.knowledge.code.search.passages import format_of
from clew.knowledge.git.blame import NAME_SHOWN, LineOrigin, blame_lines
from clew.knowledge.lines import cut
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import MaskedLines, is_secret_file, mask_in_place, mask_keys, may_hold_keys

MAX_BYTES = 2_000_000
"""Larger files are not read: people do not write them."""
BINARY = "is binary"
FOLLOWED = "python"
"""The language whose values are followed."""
_HEAD_BYTES = 8_000
"""Bytes that decide whether a file is text, and its language."""
_CACHED_TEXTS = 128

_BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MAGIC = (b"%PDF-", b"\x89PNG", b"GIF8", b"PK\3\4", b"\x7fELF", b"\x1f\x8b", b"SQLite format 3", b"\xca\xfe\xba\xbe")
_CONTROL = bytes(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 27})
_MAX_CONTROL = 0.1
"""The largest share of control characters in text."""

_KEY_FILE = lazy_pattern(
    r"\s*(?:(?:#|//|[A-Za-z-]+:)[^\n]*\n\s*){0,20}-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?!\\n)"
    r"|PuTTY-User-Key-File-\d"
)
_SETTING = lazy_pattern(r"^[ \t]*(?:export[ \t]+)?[A-Za-z_][\w.-]*[ \t]*[=:][ \t]*(?P<value>[^\n]*)$", re.MULTILINE)
_COMMENT = lazy_pattern(r"^[ \t]*(?:[#;][^\n]*)?$\n?", re.MULTILINE)
_SERVICE_ACCOUNT = lazy_pattern(
    r"\"private_key\"\s*:\s*\"-----BEGIN|\"type\"\s*:\s*\"service_account\"[^}]*\"private_key\""
)
_CODE = lazy_pattern(
    r".+\.(?:py|pyi|js|mjs|cjs|jsx|ts|tsx|go|rs|java|c|h|cc|cpp|hpp|rb|php|cs|kt|swift|scala|md|rst|txt|html)",
    re.IGNORECASE,
)
_SETTINGS_FILE = lazy_pattern(r"(?:.*\.)?(?:env|envrc|properties|conf|cfg|ini|toml|ya?ml|json|tfvars)", re.IGNORECASE)


class FileContent(NamedTuple):
    """A file as it was read. `looked_ns` is the time before reading, or 0 if the file changed while it was read. A file
    that is not read has no blob, and `left_out` says why."""

    path: str
    status: FileStatus
    looked_ns: int
    blob: str
    body: bytes = b""
    left_out: str = ""


class ParseJob(NamedTuple):
    """A content to parse: into facts and words, into facts alone, into the summary of its flow, or into several."""

    body: bytes
    language: str
    has_facts: bool = True
    has_flow: bool = False
    has_words: bool = True


class ReadableFile(NamedTuple):
    """A file to index: its language, or empty, and its text without keys. `left_out` says why it has no text."""

    content: FileContent
    language: str
    text: str = ""
    left_out: str = ""

    def job(self, *, has_facts: bool = True, has_flow: bool = False, has_late_words: bool = False) -> ParseJob:
        """The job that parses the text. Only Python has a flow, and words that may come late."""
        is_followed = self.language == FOLLOWED
        body = self.text.encode("utf-8", errors="replace")
        return ParseJob(body, self.language, has_facts, has_flow and is_followed, not (has_late_words and is_followed))


def blob_id(body: bytes) -> str:
    """The output of `git hash-object`, 40 hexadecimal digits."""
    return hashlib.sha1(b"blob %d\0%b" % (len(body), body), usedforsecurity=False).hexdigest()


def read_content(root: str, path: str) -> FileContent | None:
    """Read a file below a real root, or None if it is gone or no regular file. Follows no links on the way."""
    looked_ns = time.time_ns()
    try:
        descriptor = open_inside(root, path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        return _unreadable(root, path, looked_ns, error)
    try:
        found = os.fstat(descriptor)
        return _read(descriptor, path, status_of(found), looked_ns) if stat.S_ISREG(found.st_mode) else None
    finally:
        os.close(descriptor)


def _read(descriptor: int, path: str, status: FileStatus, looked_ns: int) -> FileContent:
    if status.size > MAX_BYTES:
        return FileContent(path, status, looked_ns, "", left_out=f"has over {MAX_BYTES:,} bytes")
    try:
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            body = file.read(MAX_BYTES + 1)
    except OSError as error:
        return FileContent(path, status, looked_ns, "", left_out=f"cannot be read ({error.strerror})")
    is_whole = status_of(os.fstat(descriptor)) == status and len(body) == status.size
    return FileContent(path, status, looked_ns if is_whole else 0, blob_id(body), body)


def _unreadable(root: str, path: str, looked_ns: int, error: OSError) -> FileContent | None:
    try:
        found = os.lstat(f"{root}/{path}")
    except OSError:
        return None
    reason = f"cannot be read ({error.strerror})"
    is_file = stat.S_ISREG(found.st_mode)
    return FileContent(path, status_of(found), looked_ns, "", left_out=reason) if is_file else None


def make_readable(content: FileContent) -> ReadableFile:
    """The text of a file to index. Keys in it are masked, and lines keep their numbers."""
    left_out = content.left_out or ("" if is_text(content.body) else BINARY)
    left_out = left_out or looks_secret(content.path, content.body)
    if left_out:
        return ReadableFile(content, "", left_out=left_out)
    language = language_of(content.path, content.body[:_HEAD_BYTES]) or format_of(content.path)
    return ReadableFile(content, language, readable_text(content.body))


def decode_text(body: bytes) -> str:
    """The text of a file, keys included. Bytes that are not UTF-8 are read as Latin-1."""
    if body.startswith(_BYTE_ORDER_MARKS):
        return body.decode("utf-16", errors="replace")
    try:
        return body.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("latin-1")


def readable_text(body: bytes) -> str:
    """The text of a file without keys; lines keep their numbers."""
    text = decode_text(body)
    return mask_in_place(text) if may_hold_keys(text) else text


@lru_cache(_CACHED_TEXTS)
def readable_lines(body: bytes) -> list[str]:
    """The lines of `readable_text`. The list is cached and must not be changed."""
    return readable_text(body).split("\n")


@lru_cache(_CACHED_TEXTS)
def masked_lines(body: bytes) -> MaskedLines:
    """The lines of a text with keys masked on access, for callers that need few lines."""
    return MaskedLines(decode_text(body))


def is_text(content: bytes) -> bool:
    """Whether a file is text. An empty one is."""
    head = content[:_HEAD_BYTES]
    if head.startswith(_BYTE_ORDER_MARKS):
        return True
    if head.startswith(_MAGIC) or b"\0" in head:
        return False
    return len(head) - len(head.translate(None, _CONTROL)) <= _MAX_CONTROL * len(head)


def looks_secret(path: str, content: bytes) -> str:
    """Why a file is left out, or empty: it is a key, a file made for secrets, or settings that are mostly keys.
    Examples in a project, and code with a key in it, are not left out."""
    name = path.replace("\\", "/").rpartition("/")[2]
    text = content[: 4 * _HEAD_BYTES].decode("utf-8", "replace")
    if _KEY_FILE.match(text):
        return "a private key"
    if _SERVICE_ACCOUNT.search(text) and name.lower().endswith(".json"):
        return "the key of a service account"
    if is_secret_file(name) and not _CODE.fullmatch(name):
        return "" if _is_public(name, text) else "a file made for secrets"
    if _SETTINGS_FILE.fullmatch(name) and _is_mostly_keys(text):
        return "settings that are mostly keys"
    return ""


def _is_public(name: str, text: str) -> bool:
    """Whether the file is empty, a certificate or a public key; these have the same extensions."""
    if not text.strip():
        return True
    return name.lower().endswith((".pem", ".key")) and "-----BEGIN " in text and "PRIVATE" not in text


def _is_mostly_keys(text: str) -> bool:
    values = [found["value"] for found in _SETTING.finditer(_COMMENT.sub("", text))]
    keys = sum(mask_keys(value) != value for value in values)
    return keys > 0 and 2 * keys >= len(values)


def find_origins(root: Path, path: str, first: int, last: int) -> list[LineOrigin]:
    """The commits that these lines of a file on disk come from, in their order.

    Raises NotFound for a file or line that does not exist, InvalidInput for a file that is not shown or belongs to
    another repository, SourceError when git fails.
    """
    place = file_of(root, path)
    if ".git" in place.split("/"):
        raise InvalidInput("path", f"{cut(place, NAME_SHOWN)} is git's own, and no file of the project")
    content = read_content(str(root.resolve()), place)
    if content is None:
        raise NotFound("file", cut(place, NAME_SHOWN))
    if reason := content.left_out or looks_secret(place, content.body):
        raise InvalidInput("path", f"{cut(place, NAME_SHOWN)} {reason}, and is left out")
    return blame_lines(root, place, content.body, first, last)
