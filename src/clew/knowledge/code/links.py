"""Brings the edges of a store up to date with its files, in two ways: by names, which is quick, and by following the
values of Python programs, which takes longer and finds more. What was followed is kept in memory, so that after a
change only what it concerns is linked again."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future

import msgspec

from clew.knowledge.code.edges import unlinked, write_edges
from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.imports import Packages
from clew.knowledge.code.linking import Linker
from clew.knowledge.code.models import FileFacts
from clew.knowledge.code.parsing import readable_text, run_job
from clew.knowledge.code.pool import IN_FLIGHT, POOL_FROM, Job, Pool, batches
from clew.knowledge.code.python_flow import Summary
from clew.knowledge.code.rows import Parsed, decode_facts, find_facts, find_summary, write_summary
from clew.knowledge.code.store import CodeStore, Sql, read_meta, write_meta

FOLLOWED = "python"

_decode_summary = msgspec.msgpack.Decoder(Summary).decode
_MANIFESTS = {
    "go.mod": re.compile(rb"(?m)^module\s+(\S+)"),
    "Cargo.toml": re.compile(rb"(?m)^\[package\]\s*$(?:\n(?!\[)[^\n]*)*?\nname\s*=\s*[\"']([\w-]{1,100})[\"']"),
}
"""What a manifest calls its folder."""

Contents = dict[str, tuple[str, str]]
"""Blob and language of each file, by path."""


class Links:
    """The edges of one store. Not for several threads at once."""

    def __init__(self, store: CodeStore, root: str) -> None:
        self._store = store
        self._root = root
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
        linker = Linker(facts, packages=self._packages(contents)) if missing else None
        with self._store.writing() as sql:
            if linker is not None:
                write_edges(sql, {path: linker.edges(path) for path in sorted(missing & contents.keys())})
            write_meta(sql, "linked", generation)

    def follow(self) -> None:
        """Have the edges of all files as they are known at this moment. Where values cannot be followed, being
        too many or too deep, names say what they can."""
        with self._store.reading() as sql:
            generation, contents, missing = _read_state(sql)
        self._summarize(contents)
        try:
            with self._store.reading() as sql:
                touched = self._bring_up(sql, contents)
            linker = self._linker
            assert linker is not None
        except (RecursionError, MemoryError):
            linker, touched = self._by_names(contents), contents
        with self._store.writing() as sql:
            write_edges(sql, {path: linker.edges(path) for path in sorted({*touched, *missing} & contents.keys())})
            write_meta(sql, "linked", generation)
            write_meta(sql, "followed", generation)

    def _by_names(self, contents: Contents) -> Linker:
        """A linker that follows no values. The next change is followed anew."""
        self._linker, self._known = None, {}
        with self._store.reading() as sql:
            facts = _read_facts(sql, contents, contents)
        return Linker(facts, packages=self._packages(contents))

    def _bring_up(self, sql: Sql, contents: Contents) -> Iterable[str]:
        """Bring the linker to these contents; the files whose edges may be others now."""
        changed = {path for path, content in contents.items() if self._known.get(path) != content}
        facts, summaries = _read_facts(sql, changed, contents), _read_summaries(sql, changed, contents)
        linker, self._linker = self._linker, None  # one that fails in the middle is of no more use
        if linker is None:
            linker = Linker(facts, summaries, packages=self._packages(contents))
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
                if language == FOLLOWED
                and self._known.get(path) != (blob, language)
                and not find_summary(sql, blob, language)
            }
        if not wanted:
            return
        pool = Pool() if len(wanted) >= POOL_FROM else None
        flying: deque[tuple[list[str], Future[list[Parsed]] | list[Parsed]]] = deque()
        try:
            for batch in batches(list(wanted.items())):
                blobs, jobs = self._jobs(batch)
                flying.append((blobs, pool.submit(jobs) if pool else [run_job(job) for job in jobs]))
                if len(flying) > IN_FLIGHT:
                    self._keep(*flying.popleft())
            while flying:
                self._keep(*flying.popleft())
        finally:
            if pool is not None:
                pool.close()

    def _jobs(self, batch: Iterable[tuple[str, str]]) -> tuple[list[str], list[Job]]:
        found: dict[str, Job] = {}
        for blob, path in batch:
            content = read_content(self._root, path)
            if content is not None and content.blob == blob:
                found[blob] = Job(readable_text(content.body).encode("utf-8", errors="replace"), FOLLOWED, True)
        return list(found), list(found.values())

    def _keep(self, blobs: list[str], parsing: Future[list[Parsed]] | list[Parsed]) -> None:
        results = parsing if isinstance(parsing, list) else parsing.result()
        with self._store.writing() as sql:
            for blob, parsed in zip(blobs, results, strict=True):
                write_summary(sql, blob, FOLLOWED, parsed.summary)

    def _packages(self, paths: Iterable[str]) -> Packages:
        """What the manifests among the files call their folders."""
        go, rust = dict[str, str](), dict[str, str]()
        for path in paths:
            folder, _, name = path.rpartition("/")
            content = read_content(self._root, path) if name in _MANIFESTS else None
            found = _MANIFESTS[name].search(content.body) if content is not None else None
            if found is not None and name == "go.mod":
                go[folder] = found[1].decode(errors="replace")
            elif found is not None:
                rust[found[1].decode(errors="replace").replace("-", "_")] = f"{folder}/src".lstrip("/")
        return Packages(go, rust)


def _read_state(sql: Sql) -> tuple[int, Contents, set[str]]:
    """Where the files are, what each holds, and which have no edges."""
    rows = sql.execute("SELECT path, blob, language FROM files WHERE left_out = ''")
    contents = {path: (blob.hex(), language) for path, blob, language in rows}
    return read_meta(sql, "generation", 0), contents, unlinked(sql)


def _read_facts(sql: Sql, paths: Iterable[str], contents: Contents) -> dict[str, FileFacts]:
    found = {path: find_facts(sql, *contents[path]) for path in sorted(paths)}
    return {path: decode_facts(facts) for path, facts in found.items() if facts is not None}


def _read_summaries(sql: Sql, paths: Iterable[str], contents: Contents) -> dict[str, Summary]:
    python = (path for path in sorted(paths) if contents[path][1] == FOLLOWED)
    found = {path: find_summary(sql, *contents[path]) for path in python}
    return {path: _decode_summary(summary) for path, summary in found.items() if summary}
