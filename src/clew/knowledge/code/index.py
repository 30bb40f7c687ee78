"""Brings what is known of the code up to date: looks which files changed, reads and parses those, writes them down
batch by batch, and links. Whatever ends it, the next run goes on with what is missing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, Protocol

import msgspec

from clew.clock import Clock
from clew.errors import StorageError
from clew.knowledge.code.files import Status, Tree
from clew.knowledge.code.index_pass import Count, Progress, Run, advance
from clew.knowledge.code.process_lock import alone, is_taken
from clew.knowledge.code.rows import FileRow, drop_file, find_file, read_files
from clew.knowledge.code.store import CodeStore, read_meta, write_meta
from clew.knowledge.code.text_index import TextIndex

EMBEDDED = 100
"""So many contents get their vectors in one transaction."""
KEPT_BLOBS_SECONDS = 30 * 86_400

Until = Literal["linked", "embedded", "followed"]
"""How far a refresh goes, each after the one before it."""
Step = Callable[[Progress], None]


class Linking(Protocol):
    """What finds edges: quickly for files that have none, or for all of them. `prepare` says that it will have to, and
    for how many files."""

    def prepare(self, files: int) -> None: ...

    def link(self) -> None: ...

    def follow(self) -> None: ...

    def close(self) -> None: ...


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """What a refresh did: files that count, those that changed or went, and how many contents were parsed."""

    files: int
    changed: Sequence[str] = ()
    gone: Sequence[str] = ()
    parsed: int = 0
    seconds: float = 0.0


class Indexer:
    """One folder and its store. Calls block, and may come from several threads: small updates go between the batches of
    a refresh."""

    def __init__(self, tree: Tree, store: CodeStore, text: TextIndex, links: Linking, clock: Clock) -> None:
        self._tree = tree
        self._store = store
        self._text = text
        self._links = links
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
        self._links.close()

    def wait(self) -> None:
        """Until no refresh and no linking is under way; what was prepared for one is ended."""
        with self._refreshing, self._linking:
            self._links.close()

    def refresh(self, report: Progress | None = None, *, until: Until = "followed") -> Indexed:
        """Bring all files up to date, and link them by their names; then make their vectors, and follow their values,
        unless it is to end earlier. While another process does the same, it is waited for."""
        tell = report or _tell_nobody
        began = time.monotonic()
        with self._refreshing, alone(self._store.path, lambda: tell(0, 0, "another process is indexing")):
            tell(0, 0, "looking")
            present, known = self._look()
            doubtful = [path for path, status in present.items() if not _is_known(known.get(path), status)]
            gone = sorted(known.keys() - present.keys())
            self._mark_whole(not doubtful and not gone and self.is_whole)
            run = self._run(known, self._preparing(tell, len(present)), len(doubtful))
            run.take_in(sorted(doubtful, key=_order))
            self._drop(gone)
            self._prune()
            self._mark_whole(not self._stopped.is_set())
            steps: dict[Until, Step] = {"linked": self.link, "embedded": self.embed, "followed": self._follow}
            self._connect(tell, list(steps.values())[: list(steps).index(until) + 1])
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
    def is_whole(self) -> bool:
        """Whether all files were read when somebody last looked at all of them, and nothing ended that early."""
        return bool(self._store.meta("whole", 0))

    def _mark_whole(self, is_whole: bool) -> None:
        if is_whole != self.is_whole:
            with self._store.writing() as sql:
                write_meta(sql, "whole", int(is_whole))

    @property
    def is_linked(self) -> bool:
        """Whether every file has the edges of what is known of it."""
        return self._has_reached("linked")

    def link(self, report: Progress | None = None) -> None:
        """Give every file edges of what is known of it, at least those that its names say. Begins by telling, whether
        there is anything to do or not: whoever waits for the files need not wait for what follows from them."""
        (report or _tell_nobody)(0, 0, "linking")
        with self._linking:
            if not self.is_linked:
                self._links.link()

    def follow(self, report: Progress | None = None) -> None:
        """Bring all edges up to date, those too that only following values finds, of the files as they are known."""
        tell = report or _tell_nobody
        with self._refreshing, alone(self._store.path, lambda: tell(0, 0, "another process is indexing")):
            self._connect(tell, [self._follow])

    def _follow(self, tell: Progress) -> None:
        with self._linking:
            if not self._has_reached("followed"):
                tell(0, 0, "following")
                self._links.follow()

    def _has_reached(self, mark: str) -> bool:
        with self._store.reading() as sql:
            return bool(read_meta(sql, "generation", 0) == read_meta(sql, mark, 0))

    def _run(self, known: dict[str, FileRow], tell: Progress, total: int) -> Run:
        seen = int(self._clock.now().timestamp())
        return Run(self._tree, self._store, self._text, known, Count(tell, total, self._stopped, seen))

    def _preparing(self, tell: Progress, files: int) -> Progress:
        """What tells the same, and has linking prepared when half of what there is to read is read."""

        def report(done: int, total: int, what: str) -> None:
            if 2 * done >= total and not self._stopped.is_set():
                self._links.prepare(files)
            tell(done, total, what)

        return report

    def _look(self) -> tuple[dict[str, Status], dict[str, FileRow]]:
        """The files as they are, and as they are known. While git lists the ones, the others are read."""
        with ThreadPoolExecutor(1, thread_name_prefix="clew-looking") as thread:
            looking = thread.submit(self._tree.look)
            with self._store.reading() as sql:
                known = read_files(sql)
            return looking.result(), known

    def _connect(self, tell: Progress, steps: Iterable[Step]) -> None:
        """All that comes after reading. Closing ends the process that links in the middle: that is no error then."""
        try:
            for step in steps:
                if not self._stopped.is_set():
                    step(tell)
        except StorageError:
            if not self._stopped.is_set():
                raise

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
            advance(sql)

    def _prune(self) -> None:
        """Forget contents that no file has had for long."""
        with self._store.writing() as sql:
            gone = sql.execute(
                "DELETE FROM blobs WHERE seen < ? AND blob NOT IN (SELECT blob FROM files) RETURNING 1",
                (int(self._clock.now().timestamp()) - KEPT_BLOBS_SECONDS,),
            ).fetchall()
            if gone:
                self._text.prune()


def _is_known(row: FileRow | None, status: Status | None) -> bool:
    """Whether a file is surely as a row says; one that there is not has neither."""
    if row is None or status is None:
        return row is None and status is None
    return row.is_as(status)


_PROSE = frozenset((".md", ".rst", ".txt", ".json", ".csv", ".svg", ".html", ".xml", ".lock", ".yml", ".yaml", ".css"))


def _order(path: str) -> tuple[bool, str]:
    """Code first: questions come before all is read."""
    return os.path.splitext(path)[1].lower() in _PROSE, path


def _tell_nobody(done: int, total: int, what: str) -> None:
    return None
