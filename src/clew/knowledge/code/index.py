"""The index of one folder: finds changed files, reads, parses and writes them in batches, and links. After an
interruption the next run continues with the files that are missing."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple, get_args

import msgspec

from clew.clock import Clock
from clew.errors import StorageError
from clew.knowledge.code import rows
from clew.knowledge.code.file_content import FileContent, ParseJob, ReadableFile, make_readable, read_content
from clew.knowledge.code.files import Tree
from clew.knowledge.code.linking.link_worker import WORKER_FROM, LinkWorker
from clew.knowledge.code.models import FileInfo, FileStatus
from clew.knowledge.code.pool import GIVEN_UP, NOT_SURVIVED, parse_batches
from clew.knowledge.code.rows import ParsedContent, drop_file, find_files, prune_contents, read_files
from clew.knowledge.code.search.late_words import lacks_words, leave_words, make_words
from clew.knowledge.code.search.search_index import SearchIndex
from clew.knowledge.code.store import CodeStore, is_locked, process_lock, read_meta, write_meta
from clew.sqlite_file import Sql

Progress = Callable[[int, int, str], None]
"""Receives the number of items that are done, the total, and the name of the step."""

_log = logging.getLogger(__name__)
EMBED_BATCH = 100
"""Contents that get their vectors in one transaction."""
KEEP_BLOBS_SECONDS = 30 * 86_400
_DOCUMENTS = frozenset(
    (".md", ".rst", ".txt", ".json", ".csv", ".svg", ".html", ".xml", ".lock", ".yml", ".yaml", ".css")
)
Until = Literal["read", "linked", "embedded", "followed"]
"""The last step of a refresh. A refresh that stops after reading prepares for `follow`."""
_UNTIL: tuple[Until, ...] = get_args(Until)
Step = Callable[[Progress], None]


class _FileEntry(NamedTuple):
    """A file on its way into the store. If `readable` is None, the file is gone. If `is_new` is false, its content is
    known."""

    path: str
    readable: ReadableFile | None
    parsed: ParsedContent | None = None
    is_new: bool = False

    @property
    def is_unparsed(self) -> bool:
        return self.is_new and self.parsed is None and self.readable is not None and not self.readable.left_out


class IndexPass:
    """Indexes files, and remembers which of them changed or were gone, and how many contents it parsed."""

    def __init__(
        self,
        tree: Tree,
        store: CodeStore,
        known: dict[str, FileInfo],
        *,
        report: Callable[[int], None],
        is_stopped: Callable[[], bool],
        seen: int,
        has_flow: bool = False,
        has_late_words: bool = False,
    ) -> None:
        """`report` receives the number of files that are done; `seen` is the time of the pass in seconds. With
        `has_flow`, it also summarizes the flow of values. With `has_late_words`, it leaves the words of such contents
        for `make_words`."""
        self.changed: list[str] = []
        self.gone: list[str] = []
        self.parsed = 0
        self._tree = tree
        self._store = store
        self._known = known
        self._report = report
        self._is_stopped = is_stopped
        self._seen = seen
        self._has_flow = has_flow
        self._has_late_words = has_late_words
        self._done = 0
        self._unparsed: list[tuple[str, str]] = []

    def run(self, paths: Sequence[str]) -> None:
        for entries, results in parse_batches(paths, self._prepare):
            self._finish(entries, iter(results))
        self._report_unparsed()

    def _prepare(self, paths: Sequence[str]) -> tuple[list[_FileEntry], list[ParseJob]] | None:
        if self._is_stopped():
            return None
        entries = [self._read(path) for path in paths]
        unparsed = [entry.readable for entry in entries if entry.readable is not None and entry.is_unparsed]
        has_flow, has_late_words = self._has_flow, self._has_late_words
        return entries, [readable.job(has_flow=has_flow, has_late_words=has_late_words) for readable in unparsed]

    def _read(self, path: str) -> _FileEntry:
        content = read_content(self._tree.root, path)
        if content is None:
            return _FileEntry(path, None)
        row = self._known.get(path)
        if row is not None and _is_same(row, content):
            return _FileEntry(path, ReadableFile(content, row.language))
        readable = make_readable(content)
        if readable.left_out:
            return _FileEntry(path, readable, is_new=True)
        with self._store.reading() as sql:
            facts = rows.find_facts(sql, content.blob, readable.language)
            is_known = self._has_late_words or rows.has_words(sql, content.blob, readable.language)
        return _FileEntry(path, readable, ParsedContent(facts) if facts and is_known else None, is_new=True)

    def _finish(self, entries: list[_FileEntry], results: Iterator[ParsedContent]) -> None:
        """Write a batch with the results of its unparsed entries."""
        with self._store.writing() as sql:
            before = len(self.changed) + len(self.gone)
            for entry in entries:
                if entry.readable is not None and entry.is_unparsed:
                    parsed = next(results)
                    rows.write_parsed(sql, entry.readable.content.blob, entry.readable.language, parsed, self._seen)
                    self.parsed += 1
                    entry = entry._replace(parsed=parsed)
                self._write(sql, entry)
            if len(self.changed) + len(self.gone) > before:
                advance(sql)
        self._done += len(entries)
        self._report(self._done)

    def _write(self, sql: Sql, entry: _FileEntry) -> None:
        if entry.readable is None:
            if entry.path in self._known:
                self.gone.append(entry.path)
                rows.drop_file(sql, entry.path)
            return
        content = entry.readable.content
        if not entry.is_new:
            rows.write_status(sql, entry.path, content)
            return
        self.changed.append(entry.path)
        facts = rows.decode_facts(entry.parsed.facts) if entry.parsed else None
        if facts is not None and facts.error in (NOT_SURVIVED, GIVEN_UP):
            self._unparsed.append((entry.path, facts.error))
        rows.write_file(sql, content, entry.readable.language, facts, entry.readable.left_out)

    def _report_unparsed(self) -> None:
        if self._unparsed:
            path, reason = self._unparsed[0]
            others = f" and {len(self._unparsed) - 1:,} more" if len(self._unparsed) > 1 else ""
            _log.warning("%s%s: no symbols are known, %s", path, others, reason)


def _is_same(row: FileInfo, content: FileContent) -> bool:
    """Whether a row has this content. A file that cannot be read is compared by the reason."""
    return row.blob == content.blob and (bool(content.blob) or row.left_out == content.left_out)


def advance(sql: Sql) -> None:
    """Count a change of the files: edges and answers of earlier generations are out of date."""
    write_meta(sql, "generation", read_meta(sql, "generation", 0) + 1)


class IndexReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a refresh: number of files, changed and deleted paths, and number of parsed contents."""

    files: int
    changed: Sequence[str] = ()
    gone: Sequence[str] = ()
    parsed: int = 0
    seconds: float = 0.0


class Indexer:
    """The index of one folder. Calls block and may come from several threads: small updates go between the batches of a
    refresh."""

    def __init__(self, tree: Tree, store: CodeStore, text: SearchIndex, links: LinkWorker, clock: Clock) -> None:
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
        """Whether this process or another is refreshing the index."""
        return self._refreshing.locked() or is_locked(self._store.path)

    @property
    def is_whole(self) -> bool:
        """Whether the last refresh has read all files and indexed all words."""
        return bool(self._store.meta("whole", 0)) and not lacks_words(self._store)

    @property
    def is_linked(self) -> bool:
        """Whether the edges of every file are up to date."""
        return self._has_reached("linked")

    def stop(self) -> None:
        """End a running refresh after its batch, and every later one at once."""
        self._stopped.set()
        self._links.close()

    def wait(self) -> None:
        """Wait until no refresh and no linking runs, and end the link worker."""
        with self._refreshing, self._linking:
            self._links.close()

    def refresh(
        self, report: Progress | None = None, *, until: Until = "followed", has_late_words: bool = False
    ) -> IndexReport:
        """Index all changed files, then link them by names, then embed them, then follow their values, up to the step
        `until`. Waits while another process refreshes. With `has_late_words`, `follow` makes the words of Python files
        beside following their values, if another process follows them."""
        report = report or _report_nothing
        began = time.monotonic()
        with self._refreshing, process_lock(self._store.path, lambda: report(0, 0, "another process is indexing")):
            report(0, 0, "looking")
            present, known = self._list_files()
            doubtful = [path for path, status in present.items() if not _is_known(known.get(path), status)]
            gone = sorted(known.keys() - present.keys())
            self._mark_whole(not doubtful and not gone and self.is_whole)
            if doubtful or gone:
                self._links.prepare(len(present))
            has_late_words = has_late_words and until == "read" and len(present) >= WORKER_FROM
            if has_late_words and doubtful:
                leave_words(self._store)
            has_flow = until == "read"
            done = self._pass(known, report, len(doubtful), has_flow=has_flow, has_late_words=has_late_words)
            done.run(sorted(doubtful, key=_order))
            self._drop(gone)
            self._prune()
            if not has_late_words:
                self._make_words()
            self._mark_whole(not self._stopped.is_set())
            steps: list[tuple[Until, Step]] = [
                ("linked", self.link),
                ("embedded", self.embed),
                ("followed", self._follow),
            ]
            self._run_steps(report, [step for name, step in steps if _UNTIL.index(name) <= _UNTIL.index(until)])
        gone = sorted({*gone, *done.gone})
        seconds = time.monotonic() - began
        return IndexReport(files=len(present), changed=done.changed, gone=gone, parsed=done.parsed, seconds=seconds)

    def update(self, paths: Iterable[str]) -> list[str]:
        """Read some files again. Returns those that changed or are gone."""
        wanted = list(dict.fromkeys(paths))
        with self._store.reading() as sql:
            rows = find_files(sql, wanted)
        present = {path for path in rows if self._tree.status(path)}
        present |= self._tree.choose(path for path in wanted if path not in rows).keys()
        done = self._pass(rows, _report_nothing, len(present))
        done.run(sorted(present))
        gone = [path for path in rows if path not in present]
        self._drop(gone)
        return sorted({*done.changed, *done.gone, *gone})

    def freshen(self, paths: Iterable[str]) -> bool:
        """Read those of some files whose status differs from the store. Returns whether any had changed."""
        wanted = set(paths)
        if not wanted:
            return False
        with self._store.reading() as sql:
            rows = find_files(sql, wanted)
        doubtful = [path for path in wanted if not _is_known(rows.get(path), self._tree.status(path))]
        return bool(doubtful and self.update(doubtful))

    def link(self, report: Progress | None = None) -> None:
        """Give every file edges, at least those by names. Reports first, even if there is nothing to do, so that a
        caller who needs only the files can stop waiting."""
        (report or _report_nothing)(0, 0, "linking")
        with self._linking:
            if not self.is_linked:
                self._links.link()

    def follow(self, report: Progress | None = None) -> None:
        """Bring all edges of the indexed files up to date, including those for which values must be followed, and make
        the missing vectors at the same time."""
        report = report or _report_nothing
        with self._refreshing, process_lock(self._store.path, lambda: report(0, 0, "another process is indexing")):
            self._run_steps(report, [self._follow_and_embed])

    def _make_words(self) -> None:
        if lacks_words(self._store):
            make_words(self._store, self._tree.root, self._stopped.is_set)

    def embed(self, report: Progress | None = None) -> None:
        """Make the missing vectors, if there is an embedder."""
        made = 0
        while not self._stopped.is_set() and (more := self._text.embed(EMBED_BATCH)):
            made += more
            (report or _report_nothing)(made, 0, "embedding")

    def _mark_whole(self, is_whole: bool) -> None:
        if is_whole != bool(self._store.meta("whole", 0)):
            with self._store.writing() as sql:
                write_meta(sql, "whole", int(is_whole))

    def _follow(self, report: Progress) -> None:
        with self._linking:
            if not self._has_reached("followed"):
                report(0, 0, "following")
                self._links.follow()

    def _follow_and_embed(self, report: Progress) -> None:
        """Follow values and index words at the same time, because following mostly waits for the link worker."""
        with ThreadPoolExecutor(1, thread_name_prefix="clew-following") as thread:
            following = thread.submit(self._follow, report)
            self._make_words()
            self.embed()
            following.result()

    def _has_reached(self, mark: str) -> bool:
        with self._store.reading() as sql:
            return bool(read_meta(sql, "generation", 0) == read_meta(sql, mark, 0))

    def _pass(
        self,
        known: dict[str, FileInfo],
        report: Progress,
        total: int,
        *,
        has_flow: bool = False,
        has_late_words: bool = False,
    ) -> IndexPass:
        return IndexPass(
            self._tree,
            self._store,
            known,
            report=lambda done: report(done, total, "reading"),
            is_stopped=self._stopped.is_set,
            seen=int(self._clock.now().timestamp()),
            has_flow=has_flow,
            has_late_words=has_late_words,
        )

    def _list_files(self) -> tuple[dict[str, FileStatus], dict[str, FileInfo]]:
        """The files on the disk, and the stored ones, read while git lists the others."""
        with ThreadPoolExecutor(1, thread_name_prefix="clew-looking") as thread:
            looking = thread.submit(self._tree.look)
            with self._store.reading() as sql:
                known = read_files(sql)
            return looking.result(), known

    def _run_steps(self, report: Progress, steps: Iterable[Step]) -> None:
        """The steps after reading. `stop` ends the link worker during its work: that is not an error."""
        try:
            for step in steps:
                if not self._stopped.is_set():
                    step(report)
        except StorageError:
            if not self._stopped.is_set():
                raise

    def _drop(self, paths: Collection[str]) -> None:
        if not paths:
            return
        with self._store.writing() as sql:
            for path in paths:
                drop_file(sql, path)
            advance(sql)

    def _prune(self) -> None:
        """Delete contents that have belonged to no file for a long time."""
        with self._store.writing() as sql:
            prune_contents(sql, int(self._clock.now().timestamp()) - KEEP_BLOBS_SECONDS)


def _is_known(row: FileInfo | None, status: FileStatus | None) -> bool:
    """Whether the stored row is certainly right. A file that does not exist has neither row nor status."""
    if row is None or status is None:
        return row is None and status is None
    return row.is_as(status)


def _order(path: str) -> tuple[bool, str]:
    """The sort key of files: code first, because questions may arrive before all files are read."""
    return os.path.splitext(path)[1].lower() in _DOCUMENTS, path


def _report_nothing(done: int, total: int, step: str) -> None:
    return None
