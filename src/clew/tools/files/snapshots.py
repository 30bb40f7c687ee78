"""Files as they were when they were last read: read again only when they have changed, and which reader has seen
which version."""

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
from clew.tools.files.text_encoding import Decoded, decode
from clew.trust import printable

MAX_FILE = 5_000_000
"""Files up to so many bytes are read whole."""
MAX_KEPT = 64_000_000
MAX_READERS = 20_000
"""So many versions seen by readers are remembered, the latest."""

_RACY_NS = 50_000_000
"""A file read so soon after its change may change again without its time telling."""


class FileSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One file as it was read. `hash` is the SHA-256 of its bytes, `token_count` an estimate, `hit_count` how often it
    was given without being read again."""

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
    """The result of reading a file. `stamp` is another after each change of the file."""

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
    """The cache of one working folder. A file whose time and size are the same is not read again. Safe to use from
    several threads."""

    def __init__(self, clock: Clock | None = None, *, max_bytes: int = MAX_KEPT) -> None:
        self._clock = clock or SystemClock()
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._seen: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._bytes = self._hits = self._misses = 0
        self._lock = threading.Lock()

    def read(self, folder: WorkingFolder, real: str) -> FileRead:
        """A text file, from the cache where it is unchanged. Raises what `WorkingFolder.opened` raises, and
        InvalidInput for a binary file and one over 5,000,000 bytes."""
        with folder.opened(real) as (_, about):
            stamp = stamp_of(about)
        with self._lock:
            kept = self._kept.get(real)
            if kept is not None and kept.stamp == stamp and not kept.is_racy:
                return self._hit(kept)
        return self._load(folder, real, kept)

    def find(self, real: str) -> FileSnapshot | None:
        """The entry of a file, whether or not it is still true."""
        with self._lock:
            kept = self._kept.get(real)
            return kept.snapshot if kept else None

    def forget(self, real: str) -> None:
        """Take a file out, after it was written."""
        with self._lock:
            self._drop(real)

    def note_seen(self, reader: str, real: str, hash: str) -> None:
        """Remember which version of a file a reader knows."""
        with self._lock:
            self._seen[reader, real] = hash
            self._seen.move_to_end((reader, real))
            if len(self._seen) > MAX_READERS:
                self._seen.popitem(last=False)

    def seen_by(self, reader: str, real: str) -> str | None:
        """The hash of the version that a reader knows; None where it has not read it, or nobody remembers."""
        with self._lock:
            return self._seen.get((reader, real))

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
            hint = "Only text is read"
            raise InvalidInput("path", f"{printable(real, 300)} is binary ({len(content):,} bytes)", hint=hint)
        snapshot = FileSnapshot(
            path=real,
            hash=hash,
            size=len(content),
            mod_time=datetime.fromtimestamp(about.st_mtime, UTC),
            read_at=self._clock.now(),
            token_count=estimate_tokens(decoded.text),
        )
        is_racy = abs(time.time_ns() - about.st_mtime_ns) < _RACY_NS  # the clock that stamps files, not ours
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
