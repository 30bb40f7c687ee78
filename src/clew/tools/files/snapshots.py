"""A cache of file contents, which reads a file again only after a change, and a record of the versions that each reader
has seen."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from datetime import UTC, datetime

import msgspec

from clew.clock import Clock, SystemClock
from clew.errors import InvalidInput
from clew.llm.tokens import estimate_tokens
from clew.tools.files.folder import Stamp, WorkingFolder, stamp_of
from clew.tools.files.seen_versions import MemorySeenVersions, SeenVersions
from clew.tools.files.text_encoding import Decoded, decode
from clew.trust import printable

MAX_FILE = 5_000_000
"""The limit for files that are read completely, in bytes."""
MAX_KEPT = 64_000_000

_RACY_NS = 50_000_000
"""The resolution of file times. A file that is read this soon after a change may change again with the same time."""


class FileSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One file in the cache. `hash` is the SHA-256 of its bytes, `token_count` an estimate, `hit_count` the number of
    cache hits."""

    path: str
    hash: str
    size: int
    mod_time: datetime
    read_at: datetime
    token_count: int
    hit_count: int = 0


class SnapshotStats(msgspec.Struct, frozen=True, kw_only=True):
    hits: int
    misses: int
    entries: int
    bytes: int


class FileRead(msgspec.Struct, frozen=True, kw_only=True):
    """The result of reading a file. `stamp` changes with the file."""

    content: Decoded
    snapshot: FileSnapshot
    stamp: Stamp
    cache_hit: bool


class _Kept(msgspec.Struct, frozen=True):
    snapshot: FileSnapshot
    stamp: Stamp
    content: Decoded
    is_racy: bool


class Snapshots:
    """The cache of one working folder. A file with the same time and size is not read again. Safe to use from several
    threads."""

    def __init__(
        self, clock: Clock | None = None, *, max_bytes: int = MAX_KEPT, seen: SeenVersions | None = None
    ) -> None:
        self._clock = clock or SystemClock()
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._seen = seen or MemorySeenVersions()
        self._bytes = self._hits = self._misses = 0
        self._lock = threading.Lock()

    def read(self, folder: WorkingFolder, real: str) -> FileRead:
        """Read a text file, from the cache if it is unchanged. Raises the errors of `WorkingFolder.opened`, and
        InvalidInput for a binary file or one of more than 5,000,000 bytes."""
        with folder.opened(real) as (_, about):
            stamp = stamp_of(about)
        with self._lock:
            kept = self._kept.get(real)
            if kept is not None and kept.stamp == stamp and not kept.is_racy:
                return self._hit(kept)
        return self._load(folder, real, kept)

    def find(self, real: str) -> FileSnapshot | None:
        """Return the cached entry of a file, even if it is outdated."""
        with self._lock:
            kept = self._kept.get(real)
            return kept.snapshot if kept else None

    def forget(self, real: str) -> None:
        """Remove a file from the cache, after it was written."""
        with self._lock:
            self._drop(real)

    def note_seen(self, reader: str, real: str, hash: str) -> None:
        """Record the version of a file that a reader has seen."""
        self._seen.note(reader, real, hash)

    def seen_by(self, reader: str, real: str) -> str | None:
        """Return the hash of the version that a reader has seen; None if it has not read the file, or the record was
        dropped."""
        return self._seen.find(reader, real)

    def stats(self) -> SnapshotStats:
        with self._lock:
            return SnapshotStats(hits=self._hits, misses=self._misses, entries=len(self._kept), bytes=self._bytes)

    def _load(self, folder: WorkingFolder, real: str, before: _Kept | None) -> FileRead:
        content, about = folder.read(real, MAX_FILE)
        hash = hash_of(content)
        with self._lock:
            if before is not None and before.snapshot.hash == hash and before.stamp == stamp_of(about):
                return self._hit(before)
        decoded = decode(content)
        if decoded is None:
            hint = "Only text files can be read"
            raise InvalidInput("path", f"{printable(real, 300)} is binary ({len(content):,} bytes)", hint=hint)
        snapshot = FileSnapshot(
            path=real,
            hash=hash,
            size=len(content),
            mod_time=datetime.fromtimestamp(about.st_mtime, UTC),
            read_at=self._clock.now(),
            token_count=estimate_tokens(decoded.text),
        )
        is_racy = abs(time.time_ns() - about.st_mtime_ns) < _RACY_NS  # the clock of the file system
        kept = _Kept(snapshot, stamp_of(about), decoded, is_racy)
        with self._lock:
            self._misses += 1
            self._keep(kept)
        return FileRead(content=decoded, snapshot=snapshot, stamp=kept.stamp, cache_hit=False)

    def _hit(self, kept: _Kept) -> FileRead:
        snapshot = msgspec.structs.replace(kept.snapshot, hit_count=kept.snapshot.hit_count + 1)
        self._hits += 1
        if snapshot.path in self._kept:
            self._kept[snapshot.path] = msgspec.structs.replace(kept, snapshot=snapshot)
            self._kept.move_to_end(snapshot.path)
        return FileRead(content=kept.content, snapshot=snapshot, stamp=kept.stamp, cache_hit=True)

    def _keep(self, kept: _Kept) -> None:
        self._drop(kept.snapshot.path)
        self._kept[kept.snapshot.path] = kept
        self._bytes += kept.snapshot.size
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, real: str) -> None:
        if (kept := self._kept.pop(real, None)) is not None:
            self._bytes -= kept.snapshot.size


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
