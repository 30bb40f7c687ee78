"""The texts that the user agreed to, kept beside the grants, so that a later change can be shown line by line.

Keys are masked before a text is kept; a file that is no text, or a long one, is known by its digest alone.
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
"""Characters of one file that are kept."""
MAX_KEPT = 4_000_000
"""Characters that are kept of all files behind one wish."""


class FileState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file as it was: the digest of its content, its lines where it is a text that was kept, and whether it could be
    run as a program."""

    sha256: str
    lines: tuple[str, ...] | None = None
    is_program: bool = False


Files = Mapping[str, FileState]
"""By their paths, as they are shown."""


class _SnapshotRecord(msgspec.Struct, frozen=True):
    digest: str
    files: dict[str, FileState]


class AgreedTexts:
    """One file a wish, in a folder beside the file of grants; only the newest consent is remembered."""

    def __init__(self, trust: Trust) -> None:
        self._folder = trust.path.with_name(f"{trust.path.name}.texts")

    def keep(self, wish: Wish, files: Files) -> None:
        """Remember what the user agreed to. Raises ReadOnly."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._place(wish), msgspec.json.encode(_SnapshotRecord(wish.digest, dict(files))), 0o600)
        except OSError as error:
            raise ReadOnly(f"what you agreed to cannot be kept in {self._folder}: {error.strerror}") from None

    def find(self, wish: Wish, digest: str) -> Files | None:
        """The text that the user agreed to under the name of a wish, with that digest; None if unknown."""
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
        """Drop what was kept. Calling it twice is harmless, and so is a folder that cannot be written."""
        with contextlib.suppress(OSError):
            self._place(grant).unlink()

    def _place(self, one: Wish | Grant) -> Path:
        key = hashlib.sha256("\n".join((one.folder, one.kind, one.name)).encode()).hexdigest()
        return self._folder / f"{key}.json"


def forget_texts(trust: Trust, grants: Iterable[Grant]) -> None:
    """Drop the texts of grants that were taken back."""
    texts = AgreedTexts(trust)
    for each in grants:
        texts.forget(each)


def see(content: bytes, room: int = MAX_TEXT, *, is_program: bool = False) -> FileState:
    """A content as it is kept. A line from which something is masked is marked, so that a change of it is seen."""
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
