"""A journal of edits, so that an edit that is repeated after a crash is not applied twice.

An entry is written before the file. It has the hashes of the file before and after the edit, which show whether the
edit was applied.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from clew.errors import ReadOnly
from clew.files import read_file, replace_file
from clew.tools.files.edit_preview import Preview

MAX_ENTRIES = 1_000


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An edit of one file: the hashes before and after, and the answer for the caller."""

    path: str
    before: str
    after: str
    preview: Preview


class EditJournal:
    """The last thousand entries, as files in a folder. Methods block."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    def begin(self, key: str, entry: JournalEntry) -> None:
        """Record an edit durably. Raises ReadOnly if that fails; then do not apply the edit."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._place(key), msgspec.json.encode(entry), 0o600)
            self._prune()
        except OSError as error:
            raise ReadOnly(f"the journal of edits cannot be written ({error.strerror})") from None

    def find(self, key: str) -> JournalEntry | None:
        """Return the edit that was recorded under a key; None if there is none or it cannot be read."""
        try:
            return msgspec.json.decode(read_file(self._place(key)), type=JournalEntry)
        except (OSError, msgspec.DecodeError):
            return None

    def _place(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:32]}.json"

    def _prune(self) -> None:
        entries = list(self._folder.glob("*.json"))
        if len(entries) <= MAX_ENTRIES + MAX_ENTRIES // 10:
            return
        for old in sorted(entries, key=_time_of)[:-MAX_ENTRIES]:
            with contextlib.suppress(OSError):
                old.unlink()


def _time_of(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
