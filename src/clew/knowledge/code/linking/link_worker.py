"""Brings the edges of a store up to date with its files, in a process of its own for large projects.

Names give edges quickly; following the values of Python programs takes longer and finds more. The linker stays in
memory, so that a change relinks only the files that it concerns. For a large project that needs much memory and a whole
core, while questions have to be answered: a worker process links then. It ends with its input.
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from clew.errors import ClewError, Corrupted, StorageError
from clew.knowledge.code import rows
from clew.knowledge.code.file_content import FOLLOWED, ParseJob, ReadableFile, read_content, readable_text
from clew.knowledge.code.linking.imports import DeclaredFolders
from clew.knowledge.code.models import FileFacts
from clew.knowledge.code.pool import end_process, parse_batches, start_process
from clew.knowledge.code.python_calls.summary import FlowSummary
from clew.knowledge.code.store import CodeStore, read_meta, write_meta
from clew.lazy_pattern import lazy_pattern
from clew.sqlite_file import Sql

if TYPE_CHECKING:
    from clew.knowledge.code.linking.linker import Linker

WORKER_FROM = 200
"""Files from which a worker links. Smaller projects are linked here, as starting a process takes longer."""

_START = "import sys; from clew.knowledge.code.linking.link_worker import serve; serve(*sys.argv[1:])"
_DONE, _DAMAGED = "done", "damaged: "
_MANIFESTS = {
    "go.mod": lazy_pattern(rb"(?m)^module\s+(\S+)"),
    "Cargo.toml": lazy_pattern(rb"(?m)^\[package\]\s*$(?:\n(?!\[)[^\n]*)*?\nname\s*=\s*[\"']([\w-]{1,100})[\"']"),
}
"""The names that manifests give to their folders."""

_decode_summary = msgspec.msgpack.Decoder(FlowSummary).decode

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
        """Give edges by names to the files that have none. The edges of other files stay."""
        if self._linker is not None:
            self.follow()
            return
        with self._store.reading() as sql:
            generation, contents, missing = _read_state(sql)
            facts = _read_facts(sql, contents, contents) if missing else {}
        linker = self._build(facts, contents) if missing else None
        with self._store.writing() as sql:
            if linker is not None:
                rows.write_edges(sql, {path: linker.edges(path) for path in sorted(missing & contents.keys())})
            write_meta(sql, "linked", generation)

    def follow(self) -> None:
        """Bring the edges of all files up to date. If following values needs too much, names alone decide."""
        with self._store.reading() as sql:
            generation, contents, missing = _read_state(sql)
        self._summarize(contents)
        try:
            with self._store.reading() as sql:
                linker, touched = self._update(sql, contents)
        except (RecursionError, MemoryError):
            linker, touched = self._link_by_names(contents), contents
        with self._store.writing() as sql:
            rows.write_edges(sql, {path: linker.edges(path) for path in sorted({*touched, *missing} & contents.keys())})
            write_meta(sql, "linked", generation)
            write_meta(sql, "followed", generation)

    def _link_by_names(self, contents: Contents) -> Linker:
        """A temporary linker that follows no values."""
        self._linker, self._known = None, {}
        with self._store.reading() as sql:
            facts = _read_facts(sql, contents, contents)
        return self._build(facts, contents)

    def _update(self, sql: Sql, contents: Contents) -> tuple[Linker, Iterable[str]]:
        """Update the linker. Also returns the files whose edges may have changed."""
        changed = {path for path, content in contents.items() if self._known.get(path) != content}
        facts, summaries = _read_facts(sql, changed, contents), _read_summaries(sql, changed, contents)
        linker, self._linker = self._linker, None  # after an error the process cannot be used
        if linker is None:
            linker = self._build(facts, contents, summaries)
            touched: Iterable[str] = contents
        else:
            touched = linker.update(facts, summaries, self._known.keys() - contents.keys())
        self._linker, self._known = linker, contents
        return linker, touched

    def _build(
        self, facts: Mapping[str, FileFacts], contents: Contents, summaries: Mapping[str, FlowSummary] | None = None
    ) -> Linker:
        from clew.knowledge.code.linking.linker import Linker  # not for those whose files are linked

        return Linker(facts, summaries, packages=self._packages(contents))

    def _summarize(self, contents: Contents) -> None:
        """Make the missing summaries of the files that still have their content."""
        with self._store.reading() as sql:
            wanted = {
                content[0]: path
                for path, content in contents.items()
                if content[1] == FOLLOWED and self._known.get(path) != content and not rows.find_summary(sql, *content)
            }
        for blobs, results in parse_batches(list(wanted.items()), self._prepare_summaries):
            with self._store.writing() as sql:
                for blob, parsed in zip(blobs, results, strict=True):
                    rows.write_summary(sql, blob, FOLLOWED, parsed.summary)

    def _prepare_summaries(self, batch: Iterable[tuple[str, str]]) -> tuple[list[str], list[ParseJob]]:
        found: dict[str, ParseJob] = {}
        for blob, path in batch:
            content = read_content(self._root, path)
            if content is not None and content.blob == blob:
                readable = ReadableFile(content, FOLLOWED, readable_text(content.body))
                found[blob] = readable.job(has_facts=False, has_flow=True)
        return [*found], [*found.values()]

    def _packages(self, paths: Iterable[str]) -> DeclaredFolders:
        """The packages that the manifests among the files declare."""
        go, rust = dict[str, str](), dict[str, str]()
        for path in paths:
            folder, _, name = path.rpartition("/")
            content = read_content(self._root, path) if name in _MANIFESTS else None
            found = _MANIFESTS[name].search(content.body) if content is not None else None
            if found is not None and name == "go.mod":
                go[folder] = found[1].decode(errors="replace")
            elif found is not None:
                rust[found[1].decode(errors="replace").replace("-", "_")] = f"{folder}/src".lstrip("/")
        return DeclaredFolders(go, rust)


def _read_state(sql: Sql) -> tuple[int, Contents, set[str]]:
    """The generation of the files, their contents, and the files without edges."""
    found = sql.execute("SELECT path, blob, language FROM files WHERE left_out = ''")
    contents = {path: (blob.hex(), language) for path, blob, language in found}
    return read_meta(sql, "generation", 0), contents, rows.find_unlinked(sql)


def _read_facts(sql: Sql, paths: Iterable[str], contents: Contents) -> dict[str, FileFacts]:
    found = {path: rows.find_facts(sql, *contents[path]) for path in sorted(paths)}
    return {path: rows.decode_facts(facts) for path, facts in found.items() if facts is not None}


def _read_summaries(sql: Sql, paths: Iterable[str], contents: Contents) -> dict[str, FlowSummary]:
    python = (path for path in sorted(paths) if contents[path][1] == FOLLOWED)
    found = {path: rows.find_summary(sql, *contents[path]) for path in python}
    return {path: _decode_summary(summary) for path, summary in found.items() if summary}


class LinkWorker:
    """Links a large project in a worker process, and a small one in this process, with its values followed at once. Not
    for several threads at once, except `close`."""

    def __init__(self, store: CodeStore, root: str) -> None:
        self._store = store
        self._root = root
        self._here = Links(store, root)
        self._process: subprocess.Popen[bytes] | None = None
        self._era = store.era
        self._turn = threading.Lock()

    def prepare(self, files: int) -> None:
        """Start the worker process if the project is large enough to need it. Starting takes a while."""
        if files >= WORKER_FROM:
            self._running()

    def link(self) -> None:
        """As `Links.link`. Raises StorageError if the process ends early."""
        self._do("link")

    def follow(self) -> None:
        """As `Links.follow`. Raises StorageError if the process ends early."""
        self._do("follow")

    def close(self) -> None:
        """End the process, even during its work."""
        with self._turn:
            process, self._process = self._process, None
            if process is not None:
                end_process(process)

    def _do(self, command: str) -> None:
        with self._store.reading() as sql:
            files = sql.execute("SELECT count(*) FROM files").fetchone()[0]
        if files < WORKER_FROM:
            self._here.follow()
            return
        answer = self._ask(command)
        if answer != _DONE:
            self.close()
        if answer.startswith(_DAMAGED):
            raise Corrupted(answer.removeprefix(_DAMAGED))
        if answer != _DONE:
            raise StorageError(f"the code was not linked: {answer or 'the linking process ended'}", hint="Try again")

    def _ask(self, command: str) -> str:
        """The answer of the process; empty if it is gone."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write(f"{command}\n".encode())
            process.stdin.flush()
            return process.stdout.readline().decode().strip()
        return ""

    def _running(self) -> subprocess.Popen[bytes]:
        """The process; a new one after the store was built again, since the old one has the old file open."""
        if self._era != self._store.era:
            self.close()
            self._era = self._store.era
        with self._turn:
            if self._process is None:
                self._process = start_process(_START, str(self._store.path), self._root)
            return self._process


def serve(path: str, root: str) -> None:
    """The main function of the process: answers each line of its input with a line."""
    store = CodeStore(Path(path))
    links = Links(store, root)
    gc.disable()  # the linker keeps millions of objects, and scanning them for cycles is slow
    for line in sys.stdin:
        try:
            links.link() if line.strip() == "link" else links.follow()
            answer = _DONE
        except Corrupted as error:
            answer = _DAMAGED + " ".join(str(error).split())
        except ClewError as error:
            answer = " ".join(str(error).split())
        except Exception as error:  # a task boundary: the caller gets the error, and may ask again
            answer = f"unforeseen {type(error).__name__}"
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
        gc.collect()
        gc.freeze()
    store.close()
