"""The code of one folder, as the rest of Clew uses it.

Before a call returns, it checks the files that the result is about, and reads those that changed. So a result is
correct for the files on the disk, and names their blobs.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from clew.clock import Clock
from clew.errors import Busy, Corrupted, InvalidInput, NotFound
from clew.knowledge.code import callers, queries
from clew.knowledge.code.excerpts import Excerpt, find_in_texts, read_excerpts
from clew.knowledge.code.file_content import read_content, readable_lines
from clew.knowledge.code.files import Tree
from clew.knowledge.code.index import Indexer, IndexReport, Progress, Until
from clew.knowledge.code.linking.link_worker import LinkWorker
from clew.knowledge.code.models import (
    CalledSymbol,
    Callers,
    FileFacts,
    FileInfo,
    LeftOutFile,
    LocatedFile,
    NamedCall,
    SymbolLink,
    SymbolRow,
    readings,
    to_node,
)
from clew.knowledge.code.rows import find_file_facts
from clew.knowledge.code.search.postings import PassagePlace
from clew.knowledge.code.search.ranking import Shares
from clew.knowledge.code.search.search_index import PassageHit, SearchIndex
from clew.knowledge.code.store import CodeStore, read_meta
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.sqlite_file import Sql
from clew.trail.model.globs import glob_matches
from clew.trail.store import Embedder

T = TypeVar("T")

DATABASE = "code.db"
MAX_DEPTH, MAX_LIMIT = 10, 200
ROUNDS = 8
SHOWN = 20
"""The number of best passages that are checked against their files."""
EXACT, PREFIX = 1.0, 0.9
"""The similarity of a symbol whose name equals the query, and of a symbol whose name starts with it."""
UNWATCHED_SECONDS = 1.0
"""Without a watch, a check of all files is valid for this long."""
DENIAL_SECONDS = 0.2
"""With a watch, the seconds for which a check is valid before NotFound is raised, because events of the watch arrive a
moment after the change."""

Hits = list[tuple[SymbolRow, float]]


def open_code(folder: Path, root: Path, clock: Clock, embedder: Embedder | None) -> CodeGraph:
    """Open the code below `root`, with its database in `folder`. Reads no files yet: earlier results are available at
    once, and `refresh` updates them. Close it, or use it as a context. Raises StorageError."""
    store = CodeStore(folder / DATABASE)
    tree = Tree(root)
    text = SearchIndex(store, embedder)
    return CodeGraph(tree, store, Indexer(tree, store, text, LinkWorker(store, tree.root), clock), text)


class CodeGraph:
    """Every method but `contains` runs in a thread. Methods raise NotFound, InvalidInput for wrong arguments, and Busy
    if files change faster than they can be read. `text` is the index of the words of all files."""

    def __init__(self, tree: Tree, store: CodeStore, indexer: Indexer, text: SearchIndex) -> None:
        self.tree = tree
        self.store = store
        self.indexer = indexer
        self.is_watched = False
        self.text = text
        self._looked = -math.inf
        self._files: tuple[tuple[int, int], list[FileInfo]] = ((-1, 0), [])

    async def __aenter__(self) -> CodeGraph:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop running work, and close the database."""
        self.indexer.stop()
        await asyncio.to_thread(self.indexer.wait)
        await asyncio.to_thread(self.store.close)

    # -- freshness -------------------------------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """Whether all files are indexed."""
        return self.indexer.is_whole

    @property
    def is_current(self) -> bool:
        """Whether all files and all edges are indexed, and no refresh runs."""
        return self.is_whole and self.indexer.is_linked and not self.indexer.is_refreshing

    async def refresh(
        self, report: Progress | None = None, *, until: Until = "followed", has_late_words: bool = False
    ) -> IndexReport:
        """Bring the index up to date, up to the step `until`. Other calls are not blocked. Calls `report` from another
        thread. With `has_late_words`, `follow` makes some words."""
        return await self._run(lambda: self._refresh(report, until, has_late_words=has_late_words))

    async def follow(self, report: Progress | None = None) -> None:
        """The last steps of `refresh` alone: missing words, vectors, and edges by following values, of the indexed
        files."""
        await self._run(lambda: self.indexer.follow(report))

    async def embed(self, report: Progress | None = None) -> None:
        """Make the missing vectors of the indexed files."""
        await self._run(lambda: self.indexer.embed(report))

    async def look(self) -> None:
        """Check all files for changes, unless a watch does this or the last check was just now."""
        await self._run(self._look)

    async def state(self, paths: Iterable[str] = ()) -> str:
        """A token that changes with every change of files. Looks first, and reads those of `paths` that changed."""

        def read() -> str:
            self._look()
            self._freshen(paths)
            return f"{self.store.era}.{self.store.meta('generation', 0)}"

        return await self._run(read)

    async def warm(self) -> None:
        """Load the search index in a thread: `contains` and the methods of `text` are quick afterwards."""
        if not self.text.is_loaded():
            await asyncio.to_thread(self.text.rarity, ())

    async def freshen(self, paths: Iterable[str]) -> bool:
        """Read files again that changed since they were read. Returns whether there were any."""
        wanted = set(paths)
        return await self._run(lambda: self.indexer.freshen(wanted))

    async def update(self, paths: Iterable[str]) -> list[str]:
        """Read some files again. Returns those that changed or are gone."""
        wanted = list(paths)

        def read() -> list[str]:
            changed = self.indexer.update(wanted)
            self.indexer.embed()  # includes files that an earlier call has updated
            return changed

        return await self._run(read)

    async def with_rebuild(self, do: Callable[[], Awaitable[T]]) -> T:
        """Await a call that reads the database. After damage, rebuild the database and call it once more."""
        era = self.store.era
        try:
            return await do()
        except Corrupted as error:
            if str(self.store.path) not in str(error):
                raise
            await asyncio.to_thread(self.store.rebuild, era)
            await asyncio.to_thread(self._refresh, None, "linked")
            return await do()

    async def _run(self, do: Callable[[], T]) -> T:
        return await self.with_rebuild(lambda: asyncio.to_thread(do))

    async def _answer(
        self, find: Callable[[Sql], T], paths: Callable[[T], Iterable[str]], *, ref: str = "", links: bool = False
    ) -> T:
        return await self._run(lambda: self._fresh(find, paths, ref, links))

    def _fresh(self, find: Callable[[Sql], T], paths: Callable[[T], Iterable[str]], ref: str, links: bool) -> T:
        """Find a result none of whose files has changed since they were read; with `links`, after linking. Before
        NotFound, check the files of `ref` and all files, once."""
        self._look()
        for attempt in range(ROUNDS):
            if links and not self.indexer.is_linked and not self.indexer.is_refreshing:  # a refresh would take long
                self.indexer.link()
            try:
                with self.store.reading() as sql:
                    found = find(sql)
            except NotFound:
                named = (each.path for each in readings(ref))
                if attempt or not (self.indexer.freshen(named) or self._look(before_denial=True)):
                    raise
                continue
            if not self._freshen(paths(found)):
                return found
        raise Busy("the files change faster than they can be read")

    def _freshen(self, paths: Iterable[str]) -> bool:
        """Read those of the given files that changed. Returns whether there were any. If so, check all files, because a
        checkout changes and renames many."""
        if not self.indexer.freshen(paths):
            return False
        if not self.indexer.is_refreshing:
            self._refresh(None, "linked")
        return True

    def _look(self, *, before_denial: bool = False) -> bool:
        """Refresh the index, unless a refresh is running or was done just now. With a watch, the index is current, so
        only the check before NotFound refreshes it. Returns whether the index was refreshed."""
        seconds = (DENIAL_SECONDS if before_denial else math.inf) if self.is_watched else UNWATCHED_SECONDS
        if time.monotonic() - self._looked < seconds or self.indexer.is_refreshing:
            return False
        self._refresh(None, "linked")
        return True

    def _refresh(self, report: Progress | None, until: Until, *, has_late_words: bool = False) -> IndexReport:
        done = self.indexer.refresh(report, until=until, has_late_words=has_late_words)
        self._looked = time.monotonic()
        return done

    # -- text ------------------------------------------------------------------------------------------------------

    async def search(
        self, query: str, *, limit: int = 10, symbol_type: str | None = None, file_pattern: str | None = None
    ) -> list[ScoredNode]:
        """Symbols and files that match a query by name or text, best first; all, or those of a kind."""

        def find(sql: Sql) -> list[ScoredNode]:
            found = [*_named(sql, query, limit), *self._written(sql, query, limit, symbols=symbol_type != "file")]
            return _scored(found, symbol_type, file_pattern)[:limit]

        return await self._answer(find, _node_paths)

    async def similar(self, ref: str, *, limit: int = 10, same_type_only: bool = False) -> list[ScoredNode]:
        """Other symbols with similar text, nearest first."""

        def find(sql: Sql) -> list[ScoredNode]:
            row = queries.get_symbol(sql, ref)
            query = "\n".join((row.qualname or row.path, row.signature, row.doc))
            hits = self._written(sql, query, 3 * limit + 1, symbols=bool(row.qualname))
            others = [hit for hit in hits if hit[0].id != row.id]
            return _scored(others, row.kind if same_type_only else None)[:limit]

        return await self._answer(find, _node_paths, ref=ref)

    async def passages(
        self, words: Sequence[str], *, shares: Shares, limit: int = 60, cover: float = 0.0
    ) -> list[PassageHit]:
        """As `SearchIndex.passages`, of code and documents as they are now."""
        return await self._answer(
            lambda _: self.text.passages(words, shares=shares, limit=limit, cover=cover),
            lambda hits: {hit.place.path for hit in hits[:SHOWN]},
        )

    async def locate(self, query: str, *, limit: int = 10) -> list[LocatedFile]:
        """The files that match a text such as an issue, best first. Each has the function that a traceback names, or
        the best matching symbol."""
        _check("limit", limit, MAX_LIMIT)

        def find(sql: Sql) -> list[LocatedFile]:
            hits = self.text.search(query, limit=limit, symbols=False)
            return [located for hit in hits if (located := queries.locate_hit(sql, query, hit)) is not None]

        return await self._answer(find, lambda hits: (hit.path for hit in hits))

    async def passage_at(self, path: str, line: int) -> PassagePlace | None:
        """The passage around a line of a file."""
        return await asyncio.to_thread(self.text.passage_at, path, line)

    async def excerpts(self, places: Sequence[PassagePlace]) -> list[Excerpt]:
        """The lines of passages without keys, each with the symbol that it is."""
        return await asyncio.to_thread(read_excerpts, self.store, self.tree.root, places)

    async def find_in(
        self, places: Sequence[PassagePlace], find: Callable[[str], T | None], *, limit: int
    ) -> list[tuple[PassagePlace, T]]:
        """The first passages in which `find` finds something, each with the result. The searched text is not masked and
        may hold keys."""
        return await asyncio.to_thread(find_in_texts, self.tree.root, places, find, limit)

    async def facts_of(self, query: str, *, limit: int) -> list[tuple[str, FileFacts]]:
        """The files that a query finds, best first, with their facts."""

        def find(sql: Sql) -> list[tuple[str, FileFacts]]:
            hits = self.text.search(query, limit=limit, symbols=False)
            return [(hit.path, facts) for hit in hits if (facts := find_file_facts(sql, hit.path)) is not None]

        return await self._answer(find, lambda found: (path for path, _ in found))

    async def suggest(self, name: str) -> str:
        """A sentence with symbols whose names are close to a name; empty without any."""
        return await self._answer(lambda sql: queries.suggest(sql, name), lambda found: ())

    async def lines(self, path: str, start: int, end: int) -> list[str]:
        """Lines of a file without keys, including line `end`. Empty if the file does not exist."""
        content = await asyncio.to_thread(read_content, self.tree.root, path)
        return readable_lines(content.body)[start - 1 : end] if content is not None else []

    def contains(self, text: str) -> bool:
        """Whether a symbol or a file has this name, or the code has any word of it."""
        with self.store.reading() as sql:
            if queries.find_place(sql, text, "") is not None or queries.find_named(sql, text, 1):
                return True
        return self.text.knows(text)

    def _written(self, sql: Sql, query: str, limit: int, *, symbols: bool) -> Hits:
        """Symbols, or files, whose text matches a query."""
        hits = self.text.search(query, limit=limit, symbols=symbols)
        found = [(queries.find_place(sql, hit.path, hit.name or ""), hit.score) for hit in hits]
        return [(row, score) for row, score in found if row is not None]

    # -- symbols and files -----------------------------------------------------------------------------------------

    async def named(self, name: str, *, limit: int = 20) -> list[Node]:
        """The symbols with a name, which may be qualified: the same spelling first."""
        rows = await self._answer(
            lambda sql: queries.find_named(sql, name, limit), lambda rows: {row.path for row in rows}
        )
        return [to_node(row) for row in rows]

    async def symbol(self, ref: str) -> Node:
        return to_node(await self._symbol(ref))

    async def source(self, ref: str) -> str:
        """The lines of a symbol or a file with their numbers, without keys."""
        row = await self._symbol(ref)
        content = await asyncio.to_thread(read_content, self.tree.root, row.path)
        if content is None or content.blob != row.blob:
            raise Busy(f"{row.path} cannot be read just now")
        lines = readable_lines(content.body)[row.line_start - 1 : row.line_end]
        return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, row.line_start))

    async def _symbol(self, ref: str) -> SymbolRow:
        return await self._answer(lambda sql: queries.get_symbol(sql, ref), lambda row: (row.path,), ref=ref)

    async def symbols_of(self, path: str, *, symbol_type: str | None = None) -> list[Node]:
        """The symbols of a file in their order; all, or those of a kind."""
        rows = await self._answer(lambda sql: queries.find_in_file(sql, path), lambda rows: (rows[0].path,), ref=path)
        return [to_node(row) for row in rows if row.qualname and symbol_type in (None, "all", row.kind)]

    async def dependencies(self, ref: str, *, edge_type: str = "all", depth: int = 1) -> list[SymbolLink]:
        """The symbols that a symbol or a file uses, nearest first."""
        return await self._links(ref, edge_type, depth, backwards=False)

    async def dependents(self, ref: str, *, edge_type: str = "all", depth: int = 1) -> list[SymbolLink]:
        """The symbols that use a symbol or a file, nearest first."""
        return await self._links(ref, edge_type, depth, backwards=True)

    async def _links(self, ref: str, edge_type: str, depth: int, *, backwards: bool) -> list[SymbolLink]:
        types = callers.EDGE_TYPES[edge_type]

        def find(sql: Sql) -> tuple[SymbolRow, list[SymbolLink]]:
            start = queries.get_symbol(sql, ref)
            return start, callers.find_links(sql, start, types, depth, backwards=backwards)

        found = await self._answer(find, lambda got: (got[0].path, *_node_paths(got[1])), ref=ref, links=True)
        return found[1]

    async def callers(self, ref: str, *, depth: int = 1) -> Callers:
        """The callers of each symbol that a name may mean, and unresolved calls of that name."""
        _check("depth", depth, MAX_DEPTH)

        def paths(found: Callers) -> Iterable[str]:
            links = [link for each in found.symbols for link in each.callers]
            return *_node_paths(found.symbols), *_node_paths(links), *(call.path for call in found.places)

        return await self._answer(
            lambda sql: callers.find_callers(sql, ref, depth, self.text.lacking), paths, ref=ref, links=True
        )

    async def unresolved_calls(self, ref: str) -> list[NamedCall]:
        """The calls that only share the name: the `places` of `callers`, without a search for callers."""
        return await self._answer(
            lambda sql: callers.find_unresolved(sql, ref, self.text.lacking),
            lambda found: (call.path for call in found),
            ref=ref,
            links=True,
        )

    async def files(self, pattern: str = "") -> list[FileInfo]:
        """The indexed files by path, all or those that match a glob. All are the same list until a file changes."""
        files = await self._answer(self._list_files, lambda found: ())
        return [file for file in files if glob_matches(pattern, file.path)] if pattern else files

    def _list_files(self, sql: Sql) -> list[FileInfo]:
        state = self.store.era, read_meta(sql, "generation", 0)
        if self._files[0] != state:
            self._files = state, queries.list_files(sql)
        return self._files[1]

    async def count_symbols(self) -> int:
        query = "SELECT count(*) FROM symbols WHERE qualname != ''"
        return int(await self._answer(lambda sql: sql.execute(query).fetchone()[0], lambda found: ()))

    async def left_out(self) -> list[LeftOutFile]:
        """The text files that are not indexed, or only in part, with the reason, by path."""
        return await self._answer(queries.list_left_out, lambda found: ())


def _named(sql: Sql, query: str, limit: int) -> Hits:
    """Symbols whose name is, or starts with, a query of one word."""
    name = query.strip()
    if not name or len(name.split()) > 1:
        return []
    exact = queries.find_named(sql, name, limit)
    longer = queries.find_prefixed(sql, name, limit) if len(exact) < limit else []
    return [*((row, EXACT) for row in exact), *((row, PREFIX) for row in longer)]


def _scored(hits: Hits, kind: str | None, pattern: str | None = None) -> list[ScoredNode]:
    """Hits of a kind in files that match a glob, each once."""
    found: dict[int, ScoredNode] = {}
    for row, score in hits:
        if kind in (None, "all", row.kind) and (not pattern or glob_matches(pattern, row.path)):
            found.setdefault(row.id, ScoredNode(node=to_node(row), similarity=score))
    return list(found.values())


def _node_paths(found: Iterable[CalledSymbol | SymbolLink | ScoredNode]) -> list[str]:
    return [each.node.path for each in found if each.node.path]


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidInput(name, f"must be between 1 and {most}")
