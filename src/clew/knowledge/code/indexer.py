"""Brings what is known of the code up to date: looks which files changed, reads and parses those, writes them down
batch by batch, and links. Whatever ends it, the next run goes on with what is missing."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import NamedTuple

import msgspec

from clew.clock import Clock
from clew.knowledge.code.alone import alone, is_taken
from clew.knowledge.code.blobs import Content, read_content
from clew.knowledge.code.parsing import Readable, make_readable, parse
from clew.knowledge.code.pool import Pool
from clew.knowledge.code.rows import (
    FileRow,
    Parsed,
    decode_facts,
    drop_file,
    find_file,
    find_parsed,
    read_files,
    write_file,
    write_parsed,
    write_status,
)
from clew.knowledge.code.store import CodeStore, Sql, read_meta, write_meta
from clew.knowledge.code.text_index import TextIndex
from clew.knowledge.code.tree import Status, Tree

BATCH = 32
POOL_FROM = 30
"""With fewer files to parse, starting other processes takes longer than parsing here."""
IN_FLIGHT = 4
EMBEDDED = 100
"""So many contents get their vectors in one transaction."""
KEPT_BLOBS_SECONDS = 30 * 86_400

Progress = Callable[[int, int, str], None]
"""Told how many of how many are done, and what is being done."""


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """What a refresh did: files that count, those that changed or went, and how many contents were parsed."""

    files: int
    changed: Sequence[str] = ()
    gone: Sequence[str] = ()
    parsed: int = 0
    seconds: float = 0.0


class _Taken(NamedTuple):
    """A file on its way into the store: `parsed` is None where the content is the one that is known already."""

    path: str
    readable: Readable | None
    parsed: Parsed | None
    is_new: bool = False


class Indexer:
    """One folder and its store. Calls block, and may come from several threads: small updates go between the batches of
    a refresh."""

    def __init__(
        self, tree: Tree, store: CodeStore, text: TextIndex, link: Callable[[CodeStore], None], clock: Clock
    ) -> None:
        self._tree = tree
        self._store = store
        self._text = text
        self._link = link
        self._clock = clock
        self._refreshing = threading.Lock()
        self._linking = threading.Lock()
        self._stopped = threading.Event()

    @property
    def is_refreshing(self) -> bool:
        """Whether this process or another is bringing all files up to date."""
        return self._refreshing.locked() or is_taken(self._store.path)

    def stop(self) -> None:
        """Have a refresh that is under way end after its batch, and every later one at once."""
        self._stopped.set()

    def wait(self) -> None:
        """Until no refresh and no linking is under way."""
        with self._refreshing, self._linking:
            return

    def refresh(self, report: Progress | None = None) -> Indexed:
        """Bring all files up to date, and link them. While another process does the same, it is waited for."""
        tell = report or _tell_nobody
        began = time.monotonic()
        with self._refreshing, alone(self._store.path, lambda: tell(0, 0, "another process is indexing")):
            tell(0, 0, "looking")
            present = self._tree.look()
            with self._store.reading() as sql:
                known = read_files(sql)
            doubtful = [path for path, status in present.items() if not _is_known(known.get(path), status)]
            gone = sorted(known.keys() - present.keys())
            run = self._run(known, tell, len(doubtful))
            run.take_in(sorted(doubtful, key=_order))
            self._drop(gone)
            self._prune()
            if not self._stopped.is_set():
                self.link(tell)
                self.embed(tell)
        gone = sorted({*gone, *run.gone})
        seconds = time.monotonic() - began
        return Indexed(files=len(present), changed=run.changed, gone=gone, parsed=run.parsed, seconds=seconds)

    def update(self, paths: Iterable[str]) -> list[str]:
        """Bring some files up to date, whatever is known of them; those whose content did change or went."""
        wanted = list(dict.fromkeys(paths))
        with self._store.reading() as sql:
            rows = {path: row for path in wanted if (row := find_file(sql, path))}
        present = {path for path in rows if self._tree.status(path)}
        present |= self._tree.choose(path for path in wanted if path not in rows).keys()
        run = self._run(rows, _tell_nobody, len(present))
        run.take_in(sorted(present))
        gone = [path for path in rows if path not in present]
        self._drop(gone)
        return sorted({*run.changed, *run.gone, *gone})

    def freshen(self, paths: Iterable[str]) -> bool:
        """Whether any of these files was not as it is known; then it is now."""
        with self._store.reading() as sql:
            rows = [(path, find_file(sql, path)) for path in set(paths)]
        doubtful = [path for path, row in rows if not _is_known(row, self._tree.status(path))]
        return bool(doubtful and self.update(doubtful))

    @property
    def is_linked(self) -> bool:
        """Whether the edges are those of the files as they are known."""
        with self._store.reading() as sql:
            return bool(read_meta(sql, "generation", 0) == read_meta(sql, "linked", 0))

    def link(self, report: Progress | None = None) -> None:
        """Bring the edges up to date with what is known of the files."""
        with self._linking:
            if not self.is_linked:
                (report or _tell_nobody)(0, 0, "linking")
                self._link(self._store)

    def _run(self, known: dict[str, FileRow], tell: Progress, total: int) -> _Run:
        seen = int(self._clock.now().timestamp())
        return _Run(self._tree, self._store, self._text, known, _Count(tell, total, self._stopped, seen))

    def embed(self, report: Progress | None = None) -> None:
        """Make the vectors that are missing, where there is an embedder."""
        made = 0
        while not self._stopped.is_set() and (more := self._text.embed(EMBEDDED)):
            made += more
            (report or _tell_nobody)(made, 0, "embedding")

    def _drop(self, paths: Collection[str]) -> None:
        if not paths:
            return
        with self._store.writing() as sql:
            for path in paths:
                drop_file(sql, path)
                self._text.drop(path)
            _advance(sql)

    def _prune(self) -> None:
        """Forget contents that no file has had for long."""
        with self._store.writing() as sql:
            gone = sql.execute(
                "DELETE FROM blobs WHERE seen < ? AND blob NOT IN (SELECT blob FROM files) RETURNING 1",
                (int(self._clock.now().timestamp()) - KEPT_BLOBS_SECONDS,),
            ).fetchall()
            if gone:
                self._text.prune()


class _Count:
    """How far a run is, when it began, and whether it is to end early."""

    def __init__(self, tell: Progress, total: int, stopped: threading.Event, seen: int) -> None:
        self.seen = seen
        self._tell = tell
        self._total = total
        self._stopped = stopped
        self._done = 0

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def add(self, files: int) -> None:
        self._done += files
        self._tell(self._done, self._total, "reading")


class _Run:
    """One pass over files: read, parse where the content is new, and write, a batch in a transaction."""

    def __init__(self, tree: Tree, store: CodeStore, text: TextIndex, known: dict[str, FileRow], count: _Count) -> None:
        self.changed: list[str] = []
        self.gone: list[str] = []
        self.parsed = 0
        self._tree = tree
        self._store = store
        self._text = text
        self._known = known
        self._count = count

    def take_in(self, paths: Sequence[str]) -> None:
        pool = Pool() if len(paths) >= POOL_FROM else None
        flying: deque[tuple[list[_Taken], Future[list[Parsed]] | None]] = deque()
        try:
            for batch in _batches(paths, BATCH):
                if self._count.is_stopped:
                    break
                flying.append(self._start([self._read(path) for path in batch], pool))
                if len(flying) > IN_FLIGHT:
                    self._finish(*flying.popleft())
            while flying:
                self._finish(*flying.popleft())
        finally:
            if pool is not None:
                pool.close()

    def _read(self, path: str) -> _Taken:
        content = read_content(self._tree.root, path)
        if content is None:
            return _Taken(path, None, None)
        row = self._known.get(path)
        if row is not None and _is_same(row, content):
            return _Taken(path, Readable(content, row.language), None)
        readable = make_readable(content)
        if readable.left_out:
            return _Taken(path, readable, None, is_new=True)
        with self._store.reading() as sql:
            return _Taken(path, readable, find_parsed(sql, content.blob, readable.language), is_new=True)

    def _start(self, taken: list[_Taken], pool: Pool | None) -> tuple[list[_Taken], Future[list[Parsed]] | None]:
        jobs = [one.readable.job for one in taken if one.readable and _is_unparsed(one)]
        if pool is not None and jobs:
            return taken, pool.submit(jobs)
        return taken, None

    def _finish(self, taken: list[_Taken], parsing: Future[list[Parsed]] | None) -> None:
        """Wait for what is parsed elsewhere, parse the rest here, and write the batch."""
        results = iter(parsing.result()) if parsing else None
        with self._store.writing() as sql:
            before = len(self.changed) + len(self.gone)
            for one in taken:
                if one.readable is not None and _is_unparsed(one):
                    parsed = next(results) if results else parse(*one.readable.job)
                    write_parsed(sql, one.readable.content.blob, one.readable.language, parsed, self._count.seen)
                    self.parsed += 1
                    one = one._replace(parsed=parsed)
                self._write(sql, one)
            if len(self.changed) + len(self.gone) > before:
                _advance(sql)
        self._count.add(len(taken))

    def _write(self, sql: Sql, one: _Taken) -> None:
        if one.readable is None:
            if one.path in self._known:
                self.gone.append(one.path)
                drop_file(sql, one.path)
                self._text.drop(one.path)
            return
        content = one.readable.content
        if not one.is_new:
            write_status(sql, one.path, content)
            return
        self.changed.append(one.path)
        facts = decode_facts(one.parsed.facts) if one.parsed else None
        write_file(sql, content, one.readable.language, facts, one.readable.left_out)
        if facts is None or one.parsed is None:
            self._text.drop(one.path)
        elif one.parsed.words:
            self._text.put_packed(one.path, content.blob, facts.language, one.parsed.words)
        else:
            self._text.put(one.path, content.blob, facts, one.readable.text)


def _is_known(row: FileRow | None, status: Status | None) -> bool:
    """Whether a file is surely as a row says; one that there is not has neither."""
    if row is None or status is None:
        return row is None and status is None
    return row.is_as(status)


def _is_same(row: FileRow, content: Content) -> bool:
    """Whether a content is the one that a row is about. One that could not be read is known by its reason."""
    return row.blob == content.blob and (bool(content.blob) or row.left_out == content.left_out)


def _is_unparsed(one: _Taken) -> bool:
    return one.is_new and one.parsed is None and one.readable is not None and not one.readable.left_out


def _advance(sql: Sql) -> None:
    write_meta(sql, "generation", read_meta(sql, "generation", 0) + 1)


_PROSE = frozenset((".md", ".rst", ".txt", ".json", ".csv", ".svg", ".html", ".xml", ".lock", ".yml", ".yaml", ".css"))


def _order(path: str) -> tuple[bool, str]:
    """Code first: questions come before all is read."""
    return os.path.splitext(path)[1].lower() in _PROSE, path


def _batches(paths: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(paths)
    while batch := list(islice(rest, size)):
        yield batch


def _tell_nobody(done: int, total: int, what: str) -> None:
    return None
