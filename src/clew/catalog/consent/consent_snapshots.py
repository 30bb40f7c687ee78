"""The texts that the user agreed to, stored beside the grants so that a later change can be shown line by line. Keys
are masked before a text is stored. For a binary or long file, only the digest is stored.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from clew.errors import ReadOnly
from clew.files import replace_file
from clew.secrecy import mask_in_place
from clew.trust import Grant, Trust, Wish

MAX_TEXT = 200_000
"""The maximum number of stored characters of one file."""
MAX_KEPT = 4_000_000
"""The maximum number of stored characters of all files behind one wish."""


class FileState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a file at the time of consent: the digest of its content, its lines if the text was stored, and
    whether it was executable."""

    sha256: str
    lines: tuple[str, ...] | None = None
    is_program: bool = False


Files = Mapping[str, FileState]
"""File states by display path."""


class _SnapshotRecord(msgspec.Struct, frozen=True):
    digest: str
    files: dict[str, FileState]


class ConsentSnapshots:
    """Stores one snapshot file per wish, in a folder beside the file of grants. Only the latest consent is
    remembered."""

    def __init__(self, trust: Trust) -> None:
        self._folder = trust.path.with_name(f"{trust.path.name}.texts")

    def keep(self, wish: Wish, files: Files) -> None:
        """Store the texts that the user agreed to. Raises ReadOnly."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._place(wish), msgspec.json.encode(_SnapshotRecord(wish.digest, dict(files))), 0o600)
        except OSError as error:
            raise ReadOnly(
                f"the texts that you agreed to cannot be stored in {self._folder}: {error.strerror}"
            ) from None

    def find(self, wish: Wish, digest: str) -> Files | None:
        """The files that the user agreed to under the name of this wish; None unless a snapshot with this digest is
        stored."""
        try:
            found = msgspec.json.decode(self._place(wish).read_bytes(), type=_SnapshotRecord)
        except (
            OSError,
            msgspec.DecodeError,
            UnicodeError,
            RecursionError,
        ):  # it is shown to a person, and never consent
            return None
        return found.files if found.digest == digest else None

    def forget(self, grant: Grant) -> None:
        """Delete the snapshot of a grant. Does nothing if it is already gone or the folder cannot be written."""
        with contextlib.suppress(OSError):
            self._place(grant).unlink()

    def _place(self, one: Wish | Grant) -> Path:
        key = hashlib.sha256("\n".join((one.folder, one.kind, one.name)).encode()).hexdigest()
        return self._folder / f"{key}.json"


def forget_texts(trust: Trust, grants: Iterable[Grant]) -> None:
    """Delete the snapshots of revoked grants."""
    texts = ConsentSnapshots(trust)
    for each in grants:
        texts.forget(each)


def see(content: bytes, room: int = MAX_TEXT, *, is_program: bool = False) -> FileState:
    """Build the state of a file from its content. A line with a masked secret gets a short digest, so that a change in
    the line is still visible."""
    digest = hashlib.sha256(content).hexdigest()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return FileState(digest, is_program=is_program)
    if len(text) > min(room, MAX_TEXT) or "\x00" in text:
        return FileState(digest, is_program=is_program)
    pairs = zip(text.split("\n"), mask_in_place(text).split("\n"), strict=True)
    lines = tuple(line if line == shown else _marked(line, shown) for line, shown in pairs)
    return FileState(digest, lines, is_program)


def _marked(line: str, shown: str) -> str:
    return f"{shown} (masked, {hashlib.blake2b(line.encode(), digest_size=4).hexdigest()})"
