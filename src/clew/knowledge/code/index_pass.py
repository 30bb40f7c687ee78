"""One pass over files: each is read, parsed where its content is new, and written, a batch in a transaction."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from clew.knowledge.code.file_content import Content, read_content
from clew.knowledge.code.files import Tree
from clew.knowledge.code.parsing import Readable, make_readable, run_jobs
from clew.knowledge.code.pool import GIVEN_UP, IN_FLIGHT, NOT_SURVIVED, POOL_FROM, Pool, batches
from clew.knowledge.code.rows import (
    FileRow,
    Parsed,
    decode_facts,
    drop_file,
    find_facts,
    write_file,
    write_parsed,
    write_status,
)
from clew.knowledge.code.store import CodeStore, Sql, read_meta, write_meta
from clew.knowledge.code.text_index import EncodedText, TextIndex

Progress = Callable[[int, int, str], None]
"""Told how many of how many are done, and what is being done."""

_log = logging.getLogger(__name__)


class _Taken(NamedTuple):
    """A file on its way into the store: `parsed` is None where the content is the one that is known already."""

    path: str
    readable: Readable | None
    parsed: Parsed | None
    is_new: bool = False


class Count:
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


class Run:
    """Takes files in, and remembers which of them changed or were gone, and how many contents were parsed."""

    def __init__(self, tree: Tree, store: CodeStore, text: TextIndex, known: dict[str, FileRow], count: Count) -> None:
        self.changed: list[str] = []
        self.gone: list[str] = []
        self.parsed = 0
        self._tree = tree
        self._store = store
        self._text = text
        self._known = known
        self._count = count
        self._unread: list[tuple[str, str]] = []

    def take_in(self, paths: Sequence[str]) -> None:
        is_much = len(paths) >= POOL_FROM
        flying: deque[tuple[list[_Taken], Future[list[Parsed]] | None]] = deque()
        with Pool() as pool:
            for batch in batches(paths):
                if self._count.is_stopped:
                    break
                flying.append(self._start([self._read(path) for path in batch], pool if is_much else None))
                if len(flying) > IN_FLIGHT:
                    self._finish(*flying.popleft(), pool)
            while flying:
                self._finish(*flying.popleft(), pool)
        self._tell_unread()

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
            facts = find_facts(sql, content.blob, readable.language)
        return _Taken(path, readable, Parsed(facts) if facts else None, is_new=True)

    def _start(self, taken: list[_Taken], pool: Pool | None) -> tuple[list[_Taken], Future[list[Parsed]] | None]:
        jobs = [one.readable.job for one in taken if one.readable and _is_unparsed(one)]
        if pool is not None and jobs:
            return taken, pool.submit(jobs)
        return taken, None

    def _finish(self, taken: list[_Taken], parsing: Future[list[Parsed]] | None, pool: Pool) -> None:
        """Wait for what is parsed elsewhere, or parse here what can be, and write the batch."""
        here = [] if parsing else [one.readable.job for one in taken if one.readable and _is_unparsed(one)]
        results = iter(parsing.result() if parsing else run_jobs(here, pool))
        with self._store.writing() as sql:
            before = len(self.changed) + len(self.gone)
            for one in taken:
                if one.readable is not None and _is_unparsed(one):
                    parsed = next(results)
                    write_parsed(sql, one.readable.content.blob, one.readable.language, parsed, self._count.seen)
                    self.parsed += 1
                    one = one._replace(parsed=parsed)
                self._write(sql, one)
            if len(self.changed) + len(self.gone) > before:
                advance(sql)
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
        if facts is not None and facts.error in (NOT_SURVIVED, GIVEN_UP):
            self._unread.append((one.path, facts.error))
        write_file(sql, content, one.readable.language, facts, one.readable.left_out)
        if facts is None or one.parsed is None:
            self._text.drop(one.path)
        elif one.parsed.words:
            self._text.put_encoded(one.path, content.blob, facts.language, EncodedText(*one.parsed.words))
        else:
            self._text.put(one.path, content.blob, facts, one.readable.text)

    def _tell_unread(self) -> None:
        if self._unread:
            path, reason = self._unread[0]
            others = f" and {len(self._unread) - 1:,} more" if len(self._unread) > 1 else ""
            _log.warning("%s%s: no symbols are known, %s", path, others, reason)


def _is_same(row: FileRow, content: Content) -> bool:
    """Whether a content is the one that a row is about. One that could not be read is known by its reason."""
    return row.blob == content.blob and (bool(content.blob) or row.left_out == content.left_out)


def _is_unparsed(one: _Taken) -> bool:
    return one.is_new and one.parsed is None and one.readable is not None and not one.readable.left_out


def advance(sql: Sql) -> None:
    """Say that files are known otherwise than before: what follows from them is to be found again."""
    write_meta(sql, "generation", read_meta(sql, "generation", 0) + 1)
