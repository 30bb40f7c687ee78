"""Brings the edges of a store up to date with its files, in two ways: by names, which is quick, and by following the
values of Python programs, which takes longer and finds more. What was followed is kept in memory, so that after a
change only what it concerns is linked again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from clew.knowledge.code.blobs import read_content
from clew.knowledge.code.edges import unlinked, write_edges
from clew.knowledge.code.facts import FileFacts
from clew.knowledge.code.linking import Linker
from clew.knowledge.code.parsing import readable_text
from clew.knowledge.code.pool import POOL_FROM, Job, Pool
from clew.knowledge.code.python_flow import Summary
from clew.knowledge.code.rows import decode_facts, find_facts, find_summary, write_summary
from clew.knowledge.code.store import CodeStore, Sql, read_meta, write_meta

FOLLOWED = "python"
BATCH = 32

_decode_summary = msgspec.msgpack.Decoder(Summary).decode
_GO_MODULE = re.compile(rb"(?m)^module\s+(\S+)")

Contents = dict[str, tuple[str, str]]
"""Blob and language of each file, by path."""


class Links:
    """The edges of one store. Not for several threads at once."""

    def __init__(self, store: CodeStore, root: Path) -> None:
        self._store = store
        self._root = str(root)
        self._linker: Linker | None = None
        self._known: Contents = {}

    def link(self) -> None:
        """Give edges to the files that have none, by names. The edges of others stay as they were followed."""
        if self._linker is not None:
            self.follow()
            return
        with self._store.reading() as sql:
            generation, contents, missing = _read_state(sql)
            facts = _read_facts(sql, contents, contents) if missing else {}
        linker = Linker(facts, go_modules=self._go_modules(contents)) if missing else None
        with self._store.writing() as sql:
            if linker is not None:
                write_edges(sql, {path: linker.edges(path) for path in sorted(missing & contents.keys())})
            write_meta(sql, "linked", generation)

    def follow(self) -> None:
        """Have the edges of all files as they are known at this moment."""
        with self._store.reading() as sql:
            generation, contents, missing = _read_state(sql)
        self._summarize(contents)
        with self._store.reading() as sql:
            touched = self._bring_up(sql, contents)
        linker = self._linker
        assert linker is not None
        with self._store.writing() as sql:
            write_edges(sql, {path: linker.edges(path) for path in sorted({*touched, *missing} & contents.keys())})
            write_meta(sql, "linked", generation)
            write_meta(sql, "followed", generation)

    def _bring_up(self, sql: Sql, contents: Contents) -> Iterable[str]:
        """Bring the linker to these contents; the files whose edges may be others now."""
        changed = {path for path, content in contents.items() if self._known.get(path) != content}
        facts, summaries = _read_facts(sql, changed, contents), _read_summaries(sql, changed, contents)
        linker, self._linker = self._linker, None  # one that fails in the middle is of no more use
        if linker is None:
            linker = Linker(facts, summaries, go_modules=self._go_modules(contents))
            touched: Iterable[str] = contents
        else:
            touched = linker.update(facts, summaries, self._known.keys() - contents.keys())
        self._linker, self._known = linker, contents
        return touched

    def _summarize(self, contents: Contents) -> None:
        """Make the summaries that are missing, of the files that still have the content."""
        with self._store.reading() as sql:
            wanted = {
                blob: path
                for path, (blob, language) in contents.items()
                if language == FOLLOWED and self._known.get(path) != (blob, language) and not find_summary(sql, blob)
            }
        pool = Pool() if len(wanted) >= POOL_FROM else None
        try:
            for at in range(0, len(wanted), BATCH):
                self._summarize_some(list(wanted.items())[at : at + BATCH], pool)
        finally:
            if pool is not None:
                pool.close()
