"""One pass over files: read each, parse new contents, and write a batch in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from clew.knowledge.code import rows
from clew.knowledge.code.file_content import FileContent, ParseJob, ReadableFile, make_readable, read_content
from clew.knowledge.code.files import Tree
from clew.knowledge.code.models import FileInfo
from clew.knowledge.code.pool import GIVEN_UP, NOT_SURVIVED, parse_batches
from clew.knowledge.code.rows import ParsedContent
from clew.knowledge.code.store import CodeStore, read_meta, write_meta
from clew.sqlite_file import Sql

Progress = Callable[[int, int, str], None]
"""Receives the number of items that are done, the total, and the name of the step."""

_log = logging.getLogger(__name__)


class _FileEntry(NamedTuple):
    """A file on its way into the store. Without `readable` it is gone; without `is_new` its content is known."""

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
    ) -> None:
        """`report` receives the number of files that are done; `seen` is the time of the pass in seconds. With
        `has_flow`, it also summarizes how values move."""
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
        return entries, [readable.job(has_flow=self._has_flow) for readable in unparsed]

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
        return _FileEntry(path, readable, ParsedContent(facts) if facts else None, is_new=True)

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
    """Whether a content is that of a row. A file that cannot be read is compared by the reason."""
    return row.blob == content.blob and (bool(content.blob) or row.left_out == content.left_out)


def advance(sql: Sql) -> None:
    """Count a change of the files: edges and answers of earlier generations are out of date."""
    write_meta(sql, "generation", read_meta(sql, "generation", 0) + 1)
