"""The code of one folder, as the rest of Clew uses it.

Before a call returns, it checks the files that the result is about, and reads those that changed. So a result is true
of the files on the disk, and names their blobs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from clew.clock import Clock
from clew.errors import Busy, Corrupted, InvalidInput, NotFound
from clew.knowledge.code import queries
from clew.knowledge.code.callers import find_callers
from clew.knowledge.code.file_content import read_content, readable_text
from clew.knowledge.code.files import Tree
from clew.knowledge.code.index import Indexed, Indexer, Until
from clew.knowledge.code.index_pass import Progress
from clew.knowledge.code.link_worker import LinkWorker
from clew.knowledge.code.locating import place_hits
from clew.knowledge.code.models import (
    FILE_KIND,
    Callers,
    Context,
    FileInfo,
    Folder,
    LeftOut,
    Link,
    Located,
    SymbolRow,
    build_folder,
    to_kind,
    to_node,
)
from clew.knowledge.code.passages import SYMBOL_KINDS
from clew.knowledge.code.places import find_origin
from clew.knowledge.code.postings import Place
from clew.knowledge.code.ranking import Shares
from clew.knowledge.code.refs import readings
from clew.knowledge.code.search_index import PassageHit, SearchIndex
from clew.knowledge.code.store import CodeStore
from clew.knowledge.git.blame import read_line_history
from clew.knowledge.git.log import Commit
from clew.knowledge.git.store import GitLog
from clew.trail.globs import glob_matches
from clew.trail.nodes import Node, ScoredNode
from clew.trail.store import Embedder

T = TypeVar("T")

DATABASE = "code.db"
MAX_DEPTH, MAX_LIMIT = 10, 200
ROUNDS = 8
CACHED_TEXTS = 50
SHOWN = 20
"""So many of the best passages are checked against their files."""
EXACT, PREFIX = 1.0, 0.9
"""The similarity of a symbol whose name is the query, and of one whose name starts with it."""
UNWATCHED_SECONDS = 1.0
"""Without a watch, a check of all files is valid for this long."""
DENIAL_SECONDS = 0.2
"""As above, before NotFound, also with a watch: its events arrive a moment after the change."""

Hits = list[tuple[SymbolRow, float]]


class Excerpt(NamedTuple):
    """The lines of a passage, the blob of its file, and its symbol where it is one."""

    lines: list[str]
    blob: str
    symbol: Node | None


def open_code(folder: Path, root: Path, clock: Clock, embedder: Embedder | None) -> CodeGraph:
    """Open the code below `root`, with its database in `folder`. Reads no files yet: earlier results are available at
    once, and `refresh` updates them. Close it, or use it as a context. Raises StorageError."""
    store = CodeStore(folder / DATABASE)
    tree = Tree(root)
    text = SearchIndex(store, embedder)
    return CodeGraph(tree, store, Indexer(tree, store, text, LinkWorker(store, tree.root), clock), text)


class CodeGraph:
    """Every method but `contains` and `rarity` runs in a thread. Methods raise NotFound, InvalidInput for wrong
    arguments, and Busy if files change faster than they can be read."""

    def __init__(self, tree: Tree, store: CodeStore, indexer: Indexer, text: SearchIndex) -> None:
        self.tree = tree
        self.store = store
        self.indexer = indexer
        self.is_watched = False
        self._text = text
        self._looked = self._looked_again = float("-inf")
        self._texts: dict[str, list[str]] = {}
        self._unreported: set[str] = set()
        """Files that were updated before the watch noticed them."""

    async def __aenter__(self) -> CodeGraph:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop running work, and close the database."""
        self.indexer.stop()
        await asyncio.to_thread(self._close)

    @property
    def is_whole(self) -> bool:
        """Whether all files are indexed."""
        return self.indexer.is_whole

    @property
    def is_current(self) -> bool:
        """Whether all files and all edges are indexed, and no refresh runs."""
        return self.is_whole and self.indexer.is_linked and not self.indexer.is_refreshing

    async def refresh(self, report: Progress | None = None, *, until: Until = "followed") -> Indexed:
        """Bring the index up to date, up to the step `until`. Other calls work meanwhile. Calls `report` from another
        thread."""
        return await self._run(lambda: self._refresh(report, until))

    async def follow(self, report: Progress | None = None) -> None:
        """The last step of `refresh` alone: edges by following values, of the indexed files."""
        await self._run(lambda: self.indexer.follow(report))

    async def look(self) -> None:
        """Check all files for changes, unless a watch does or that was done just now."""
        await self._run(self._look)

    async def state(self) -> str:
        """A token that changes with every change of files. Calls `look` first."""

        def read() -> str:
            self._look()
            return f"{self.store.era}.{self.store.meta('generation', 0)}"

        return await self._run(read)

    async def freshen(self, paths: Iterable[str]) -> bool:
        """Read files again that changed since they were read; whether there were any."""
        wanted = set(paths)
        return await self._run(lambda: self.indexer.freshen(wanted))

    async def update(self, paths: Iterable[str]) -> list[str]:
        """Read some files again. Returns those that changed or are gone since the last `update` or `refresh`."""
        wanted = list(paths)
        return await self._run(lambda: self._update(wanted))

    async def mending(self, do: Callable[[], Awaitable[T]]) -> T:
        """Await a call that reads the database. After damage, rebuild the database and call it once more."""
        era = self.store.era
        try:
            return await do()
        except Corrupted as error:
            if str(self.store.path) not in str(error):
                raise
            await asyncio.to_thread(self._mend, era)
            return await do()

    async def search(
        self, query: str, *, limit: int = 10, symbol_type: str | None = None, file_pattern: str | None = None
    ) -> list[ScoredNode]:
        """Symbols and files that match a query by name or text, best first."""
        kind = to_kind(symbol_type)
        _check_limit(limit)

        def find() -> Hits:
            found = [*self._named(query, limit), *self._written(query, limit, symbols=kind != FILE_KIND)]
            return list(_filtered(found, kind, file_pattern))[:limit]

        return _scored(await self._answer(find, _hit_paths, looks=True))

    async def passages(
        self,
        words: Sequence[str],
        *,
        shares: Shares,
        is_changelog: Callable[[str], bool],
        limit: int = 60,
    ) -> list[PassageHit]:
        """The passages of code and documents that have these words or are close in meaning, best first."""

        def find() -> list[PassageHit]:
            return self._text.passages(words, shares=shares, is_changelog=is_changelog, limit=limit)

        return await self._answer(find, lambda hits: {hit.place.path for hit in hits[:SHOWN]}, looks=True)

    async def named(self, name: str, *, limit: int = 20) -> list[Node]:
        """The symbols with a name, which may be qualified: the same spelling first."""
        find = partial(self._read, queries.find_named, name, limit)
        return [to_node(row) for row in await self._answer(find, lambda rows: (row.path for row in rows), looks=True)]

    async def lines(self, path: str, start: int, end: int) -> list[str]:
        """Lines of a file without keys, the last one included; none where there is no such file."""

        return (await asyncio.to_thread(self._text_of, path))[1][start - 1 : end]

    async def passage_at(self, path: str, line: int) -> Place | None:
        """The passage around a line of a file."""
        return await asyncio.to_thread(self._text.passage_at, path, line)

    async def excerpts(self, places: Sequence[Place]) -> list[Excerpt]:
        """The lines of passages without keys, each with the symbol that it is."""

        def read() -> list[Excerpt]:
            texts = {path: self._text_of(path) for path in {place.path for place in places}}
            with self.store.reading() as sql:
                is_symbol = [place.kind in SYMBOL_KINDS for place in places]
                found = zip(places, is_symbol, strict=True)
                rows = [queries.find_place(sql, each.path, each.name) if wanted else None for each, wanted in found]
            return [
                Excerpt(lines[place.start - 1 : place.end], blob, to_node(row) if row is not None else None)
                for place, row in zip(places, rows, strict=True)
                for blob, lines in (texts[place.path],)
            ]

        return await asyncio.to_thread(read)

    def _text_of(self, path: str) -> tuple[str, list[str]]:
        """The blob and the lines of a file, without keys. The last few files are cached by their content."""
        content = read_content(self.tree.root, path)
        if content is None:
            return "", []
        lines = self._texts.pop(content.blob, None)
        if lines is None:
            lines = readable_text(content.body).split("\n")
        self._texts[content.blob] = lines
        while len(self._texts) > CACHED_TEXTS:
            self._texts.pop(next(iter(self._texts)), None)
        return content.blob, lines

    def correct(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """Words as the files spell them: each as it is, as one that differs by a letter, or as two."""
        return self._text.correct(words)

    async def locate(self, query: str, *, limit: int = 10) -> list[Located]:
        """The files that a text, such as an issue, is about, best first."""
        _check_limit(limit)

        def find() -> list[Located]:
            hits = self._text.search(query, limit=limit, symbols=False)
            return self._read(place_hits, query, hits)

        return await self._answer(find, lambda hits: (hit.path for hit in hits), looks=True)

    async def symbol(self, ref: str) -> Node:
        return to_node(
            await self._answer(lambda: self._read(queries.get_symbol, ref), lambda row: (row.path,), ref=ref)
        )

    async def source(self, ref: str) -> str:
        """The lines of a symbol or a file with their numbers, without keys."""
        row, text = await self._answer(lambda: self._source(ref), lambda found: (found[0].path,), ref=ref)
        if text is None:
            raise Busy(f"{row.path} cannot be read just now")
        return text

    async def symbols_of(self, path: str, *, symbol_type: str | None = None) -> list[Node]:
        """The symbols of a file in their order."""
        kind = to_kind(symbol_type)
        rows = await self._answer(
            lambda: self._read(queries.find_in_file, path), lambda rows: (row.path for row in rows[:1]), ref=path
        )
        return [to_node(row) for row in rows if row.qualname and kind in (None, row.kind)]

    async def dependencies(self, ref: str, *, edge_type: str = "all", depth: int = 1) -> list[Link]:
        """The symbols that a symbol or a file uses, nearest first."""
        return await self._links(ref, edge_type, depth, backwards=False)

    async def dependents(self, ref: str, *, edge_type: str = "all", depth: int = 1) -> list[Link]:
        """The symbols that use a symbol or a file, nearest first."""
        return await self._links(ref, edge_type, depth, backwards=True)

    async def callers(self, ref: str, *, depth: int = 1) -> Callers:
        """The callers of each symbol that a name may mean, and unresolved calls of that name."""
        _check_depth(depth)

        def find() -> Callers:
            self._link()
            return self._read(find_callers, ref, depth)

        def paths(found: Callers) -> Iterable[str]:
            shown = (node.path for each in found.symbols for node in (each.node, *(link.node for link in each.callers)))
            return *(path for path in shown if path), *(call.path for call in found.places)

        return await self._answer(find, paths, ref=ref, looks=True)

    async def context(self, ref: str) -> Context:
        node = await self.symbol(ref)
        return Context(
            node=node,
            source=await self.source(node.id),
            dependents=await self.dependents(node.id),
            dependencies=await self.dependencies(node.id),
        )

    async def similar(self, ref: str, *, limit: int = 10, same_type_only: bool = False) -> list[ScoredNode]:
        """Other symbols with similar text, nearest first."""
        _check_limit(limit)

        def find() -> tuple[SymbolRow, Hits]:
            row = self._read(queries.get_symbol, ref)
            query = "\n".join((row.qualname or row.path, row.signature, row.doc))
            hits = self._written(query, 3 * limit + 1, symbols=bool(row.qualname))
            others = [hit for hit in hits if hit[0].id != row.id]
            return row, list(_filtered(others, row.kind if same_type_only else None, None))[:limit]

        _, found = await self._answer(find, lambda got: (got[0].path, *_hit_paths(got[1])), ref=ref, looks=True)
        return _scored(found)

    async def left_out(self) -> list[LeftOut]:
        """The text files that are not indexed, or only in part, with the reason, by path."""
        return await self._answer(lambda: self._read(queries.list_left_out), lambda found: (), looks=True)

    async def files(self, pattern: str = "") -> list[FileInfo]:
        """The indexed files by path; all, or those that match a glob."""

        def find() -> list[FileInfo]:
            return [file for file in self._read(queries.list_files) if not pattern or glob_matches(pattern, file.path)]

        return await self._answer(find, lambda found: (), looks=True)

    async def structure(self, path: str = "", depth: int = 2) -> Folder:
        """A folder of the project with its content."""
        _check_depth(depth)
        place = _place(path)
        files = [file for file in await self.files() if not place or file.path.startswith(f"{place}/")]
        if place and not files:
            raise NotFound("folder", path[:200])
        return build_folder(place, files, depth)

    async def commits_of(self, path: str, *, line: int | None = None, limit: int = 10) -> list[Commit]:
        """The commits that changed a file or a line, newest first. Raises SourceError too."""
        _check_limit(limit)

        def find() -> list[Commit]:
            root = Path(self.tree.root)
            if line is not None:
                return read_line_history(root, find_origin(root, path, line), limit=limit)
            log = GitLog(self.store, root)
            log.refresh()
            return log.commits_of(path, limit=limit)

        return await self._run(find)

    def contains(self, text: str) -> bool:
        """Whether a symbol or a file has this name, or the code has any word of it."""
        with self.store.reading() as sql:
            if queries.find_place(sql, text, "") is not None or queries.find_named(sql, text, 1):
                return True
        return self._text.knows(text)

    def rarity(self, words: Sequence[str]) -> dict[str, float]:
        """How rare each word is in the code; 0 if the code does not have it."""
        return self._text.rarity(words)

    async def _links(self, ref: str, edge_type: str, depth: int, *, backwards: bool) -> list[Link]:
        types = queries.edge_types(edge_type)
        _check_depth(depth)

        def find() -> tuple[SymbolRow, list[queries.Reached]]:
            self._link()
            with self.store.reading() as sql:
                start = queries.get_symbol(sql, ref)
                return start, queries.find_linked(sql, start, types, depth, backwards=backwards)

        def paths(got: tuple[SymbolRow, list[queries.Reached]]) -> Iterable[str]:
            return got[0].path, *(each.row.path for each in got[1])

        return queries.to_links(*await self._answer(find, paths, ref=ref, looks=True))

    async def _answer(
        self, find: Callable[[], T], paths: Callable[[T], Iterable[str]], *, ref: str = "", looks: bool = False
    ) -> T:
        return await self._run(lambda: self._fresh(find, paths, ref, looks))

    async def _run(self, do: Callable[[], T]) -> T:
        """Run a call in a thread. After damage of the database, rebuild it and call once more."""

        def mended() -> T:
            era = self.store.era
            try:
                return do()
            except Corrupted:
                self._mend(era)
                return do()

        return await asyncio.to_thread(mended)

    def _mend(self, era: int) -> None:
        self.store.rebuild(era)
        self._refresh(None, "linked")

    def _fresh(self, find: Callable[[], T], paths: Callable[[T], Iterable[str]], ref: str, looks: bool) -> T:
        """Find a result none of whose files has changed since they were read. With `looks`, check all files first, if
        that is due. Before NotFound, check the files of `ref` and all files, once."""
        if looks:
            self._look()
        is_first = True
        for _ in range(ROUNDS):
            try:
                found = find()
            except NotFound:
                has_changed = is_first and self.indexer.freshen(reading.path for reading in readings(ref))
                if not (is_first and self._look_again()) and not has_changed:
                    raise
                is_first = False
                continue
            if not self.indexer.freshen(paths(found)):
                return found
        raise Busy("the files change faster than they can be read")

    def _look(self) -> None:
        """Refresh the index, unless a watch or another process does, or that was done just now."""
        if not self.is_watched and self._is_look_due() and not self.indexer.is_refreshing:
            self._refresh(None, "linked")

    def _is_look_due(self) -> bool:
        return time.monotonic() - self._looked >= UNWATCHED_SECONDS

    def _look_again(self) -> bool:
        """Refresh the index before NotFound, unless that was done just now or a refresh runs; whether it was done."""
        is_due = time.monotonic() - self._looked_again >= DENIAL_SECONDS
        if self.indexer.is_refreshing or not (is_due if self.is_watched else self._is_look_due()):
            return False
        done = self._refresh(None, "linked")
        self._unreported |= {*done.changed, *done.gone} if self.is_watched else set()
        self._looked_again = time.monotonic()
        return True

    def _refresh(self, report: Progress | None, until: Until) -> Indexed:
        done = self.indexer.refresh(report, until=until)
        self._looked = time.monotonic()
        return done

    def _update(self, paths: list[str]) -> list[str]:
        before = self._unreported.intersection(paths)
        changed = self.indexer.update(paths)
        self.indexer.embed()  # also files that an earlier call has updated
        self._unreported -= before
        return sorted({*changed, *before})

    def _close(self) -> None:
        self.indexer.wait()
        self.store.close()

    def _read(self, question: Callable[..., T], *values: object) -> T:
        with self.store.reading() as sql:
            return question(sql, *values)

    def _link(self) -> None:
        """Link the indexed files, unless a refresh runs, which would take long."""
        if not self.indexer.is_linked and not self.indexer.is_refreshing:
            self.indexer.link()

    def _named(self, query: str, limit: int) -> Hits:
        """Symbols whose name is, or starts with, a query of one word."""
        name = query.strip()
        if not name or len(name.split()) > 1:
            return []
        exact = self._read(queries.find_named, name, limit)
        longer = self._read(queries.find_prefixed, name, limit) if len(exact) < limit else []
        return [*((row, EXACT) for row in exact), *((row, PREFIX) for row in longer)]

    def _written(self, query: str, limit: int, *, symbols: bool) -> Hits:
        """Symbols, or files, whose text matches a query."""
        hits = self._text.search(query, limit=limit, symbols=symbols)
        with self.store.reading() as sql:
            found = [(queries.find_place(sql, hit.path, hit.name or ""), hit.score) for hit in hits]
        return [(row, score) for row, score in found if row is not None]

    def _source(self, ref: str) -> tuple[SymbolRow, str | None]:
        """A symbol and its lines; None if the file has changed."""
        row = self._read(queries.get_symbol, ref)
        content = read_content(self.tree.root, row.path)
        if content is None or content.blob != row.blob:
            return row, None
        lines = readable_text(content.body).split("\n")[: row.line_end]
        return row, "\n".join(f"{number}: {lines[number - 1]}" for number in range(row.line_start, len(lines) + 1))


def _place(path: str) -> str:
    plain = path.strip("/").removeprefix("./")
    return "" if plain == "." else plain


def _hit_paths(hits: Hits) -> list[str]:
    return [row.path for row, _ in hits]


def _scored(hits: Hits) -> list[ScoredNode]:
    return [ScoredNode(node=to_node(row), similarity=score) for row, score in hits]


def _filtered(hits: Hits, kind: str | None, pattern: str | None) -> Iterator[tuple[SymbolRow, float]]:
    """Hits of a kind in files that match a glob, each once."""
    seen: set[int] = set()
    for row, score in hits:
        is_wanted = kind in (None, row.kind) and (not pattern or glob_matches(pattern, row.path))
        if is_wanted and row.id not in seen:
            seen.add(row.id)
            yield row, score


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT}")


def _check_depth(depth: int) -> None:
    if not 1 <= depth <= MAX_DEPTH:
        raise InvalidInput("depth", f"must be between 1 and {MAX_DEPTH}")
