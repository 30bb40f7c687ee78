"""The version of each file that each reader has seen last. In memory, or in a folder that several processes share, so
that an agent whose calls run in two processes is one reader."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

MAX_READERS = 20_000
"""The number of versions that are remembered. The oldest are dropped."""
MAX_FOLDERS = 500


class SeenVersions(Protocol):
    """Hashes of files by reader and path."""

    def note(self, reader: str, path: str, hash: str) -> None:
        """Record the version of a file that a reader has seen."""
        ...

    def find(self, reader: str, path: str) -> str | None:
        """Return the hash of the version that a reader has seen; None if there is no record of it."""
        ...


class MemorySeenVersions:
    """Versions seen in this process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, reader: str, path: str, hash: str) -> None:
        with self._lock:
            self._seen[reader, path] = hash
            self._seen.move_to_end((reader, path))
            if len(self._seen) > MAX_READERS:
                self._seen.popitem(last=False)

    def find(self, reader: str, path: str) -> str | None:
        with self._lock:
            return self._seen.get((reader, path))


class FolderSeenVersions:
    """Versions seen in any process that uses this folder. A record that is lost with a crash is not an error: then
    nobody has seen the file. Methods block."""

    def __init__(self, folder: Path, root: str) -> None:
        """Use the part of a folder that belongs to the working folder `root`. The parts that were not used for the
        longest time are removed."""
        self._folder = folder / _digest(root)
        parts = sorted(folder.iterdir(), key=_time_of) if folder.is_dir() else []
        for each in parts[:-MAX_FOLDERS]:
            shutil.rmtree(each, ignore_errors=True)

    def note(self, reader: str, path: str, hash: str) -> None:
        place = self._folder / _digest(f"{reader}\n{path}")
        beside = place.with_name(f"{place.name}.{os.getpid()}.{threading.get_ident()}")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside.write_text(hash)
            beside.replace(place)

    def find(self, reader: str, path: str) -> str | None:
        try:
            return (self._folder / _digest(f"{reader}\n{path}")).read_text()
        except OSError:
            return None


def _time_of(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]
