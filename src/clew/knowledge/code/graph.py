"""The code of one folder as others use it. Before an answer is given, the files that it is about are looked at: what
changed is read then and there, so an answer is true of what is on the disk, and says of which content."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from clew.errors import Busy, Corrupted, InvalidInput, NotFound
from clew.knowledge.code.callers import find_callers
from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.files import Tree
from clew.knowledge.code.index import Indexed, Indexer, Until
from clew.knowledge.code.index_pass import Progress
from clew.knowledge.code.locating import place_hits
from clew.knowledge.code.lookups import (
    Reached,
    find_in_file,
    find_linked,
    find_prefixed,
    list_files,
    list_left_out,
    to_links,
)
from clew.knowledge.code.parsing import readable_text
from clew.knowledge.code.queries import find_named, find_place, get_symbol
from clew.knowledge.code.refs import readings
from clew.knowledge.code.rows import FILE_KIND, SymbolRow
from clew.knowledge.code.store import CodeStore
from clew.knowledge.code.text_index import TextIndex
from clew.knowledge.code.views import Callers, FileInfo, Folder, LeftOut, Link, Located, build_folder, to_kind, to_node
from clew.knowledge.history.blame import find_origin, read_line_history
from clew.knowledge.history.commits import Commit
from clew.knowledge.history.git_log import GitLog
from clew.trail.globs import glob_matches
from clew.trail.nodes import Node, ScoredNode

T = TypeVar("T")

EDGE_TYPES = {
    "imports": ("imports",),
    "calls": ("calls",),
    "references": ("references",),
    "extends": ("inherits",),
    "implements": ("implements",),
}
MAX_DEPTH, MAX_LIMIT = 10, 200
ROUNDS = 8
EXACT, PREFIX = 1.0, 0.9
"""How near a symbol is whose name is the query, and one whose name begins with it."""
UNWATCHED_SECONDS = 1.0
"""Without a watch, edges are answered from a look at all files that is no older than this."""
DENIAL_SECONDS = 0.2
"""So old may such a look be where something is said not to be there, also with a watch: it is told of a change a moment
after it was made."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A symbol with what one needs to read it: its source with numbered lines, who uses it, and what it uses."""

    node: Node
    source: str
    dependents: Sequence[Link]
    dependencies: Sequence[Link]


class CodeGraph:
    """Opened by `open_code`. Every method but `contains` works in a thread; answers raise NotFound for what there is
    not, InvalidInput for what cannot be asked, and Busy when files change faster than they can be read."""

    def __init__(self, tree: Tree, store: CodeStore, indexer: Indexer, text: TextIndex) -> None:
        self.tree = tree
        self.store = store
        self.indexer = indexer
        self.is_watched = False
        self._text = text
        self._looked = self._looked_again = float("-inf")
        self._untold: set[str] = set()
        """Files that were brought up to date before who watches them did so."""

    async def __aenter__(self) -> CodeGraph:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End what is under way, and close the file."""
        self.indexer.stop()
        await asyncio.to_thread(self._close)

    @property
    def is_whole(self) -> bool:
        """Whether all files are known; while they are still being read, or after that was ended early, some are not."""
        return self.indexer.is_whole

    @property
    def is_current(self) -> bool:
        """Whether all files and all edges are known; while somebody reads or links them, some are not."""
        return self.is_whole and self.indexer.is_linked and not self.indexer.is_refreshing

    async def refresh(self, report: Progress | None = None, *, until: Until = "followed") -> Indexed:
        """Bring everything up to date, edges that take long to find too unless it is to end earlier; questions are
        answered meanwhile from what is there. `report` is called from another thread."""
        return await asyncio.to_thread(self._mended, lambda: self._refresh(report, until))

    async def follow(self, report: Progress | None = None) -> None:
        """What `refresh` does last: find the edges that take long to find, of the files as they are known."""
        await asyncio.to_thread(self._mended, lambda: self.indexer.follow(report))

    async def look(self) -> None:
        """See whether files have changed, unless somebody watches them or that was done just now."""
        await asyncio.to_thread(self._mended, self._look)

    async def state(self) -> str:
        """A word that changes whenever files are known otherwise. They are looked at first, as by `look`."""

        def read() -> str:
            self._look()
            return f"{self.store.era}.{self.store.meta('generation', 0)}"

        return await asyncio.to_thread(self._mended, read)

    async def update(self, paths: Iterable[str]) -> list[str]:
        """Bring some files up to date; those whose content did change or went, also where an answer was quicker."""
        wanted = list(paths)
        return await asyncio.to_thread(self._mended, lambda: self._update(wanted))

    async def mending(self, do: Callable[[], Awaitable[T]]) -> T:
        """What a call brings that reads the store too; as in all others, damage that it finds there is mended."""
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
        """Symbols and files that a query names or is about, best first."""
        kind = to_kind(symbol_type)
        _check_limit(limit)

        def find() -> list[tuple[SymbolRow, float]]:
            found = [*self._named(query, limit), *self._written(query, limit, symbols=kind != FILE_KIND)]
            return list(_chosen(found, kind, file_pattern))[:limit]

        found = await self._answer(find, lambda hits: (row.path for row, _ in hits), looks=True)
        return [ScoredNode(node=to_node(row), similarity=score) for row, score in found]

    async def locate(self, query: str, *, limit: int = 10) -> list[Located]:
        """The files that a text, such as that of an issue, is about, best first."""
        _check_limit(limit)
        return await self._answer(lambda: self._locate(query, limit), _paths, looks=True)

    async def symbol(self, ref: str) -> Node:
        return to_node(await self._answer(lambda: self._read(get_symbol, ref), lambda row: (row.path,), ref=ref))

    async def source(self, ref: str) -> str:
        """The lines of a symbol or a file, each with its number, without keys."""
        row, text = await self._answer(lambda: self._source(ref), lambda found: (found[0].path,), ref=ref)
        if text is None:
            raise Busy(f"{row.path} cannot be read just now")
        return text

    async def symbols_of(self, path: str, *, symbol_type: str | None = None) -> list[Node]:
        """What a file defines, in its order."""
        kind = to_kind(symbol_type)

        def paths(rows: list[SymbolRow]) -> Iterable[str]:
            return (row.path for row in rows[:1])

        rows = await self._answer(lambda: self._read(find_in_file, path), paths, ref=path)
        return [to_node(row) for row in rows if row.qualname and kind in (None, row.kind)]

    async def dependencies(self, ref: str, *, edge_type: str = "all", depth: int = 1) -> list[Link]:
        """What a symbol or a file uses, nearest first."""
        return await self._links(ref, edge_type, depth, backwards=False)

    async def dependents(self, ref: str, *, edge_type: str = "all", depth: int = 1) -> list[Link]:
        """What uses a symbol or a file, nearest first."""
        return await self._links(ref, edge_type, depth, backwards=True)

    async def callers(self, ref: str, *, depth: int = 1) -> Callers:
        """What calls the symbols that a name may mean, each by itself, and calls that only share the name."""
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
        """Symbols that read like another, without itself, nearest first."""
        _check_limit(limit)

        def find() -> tuple[SymbolRow, list[tuple[SymbolRow, float]]]:
            row = self._read(get_symbol, ref)
            query = "\n".join((row.qualname or row.path, row.signature, row.doc))
            hits = self._written(query, 3 * limit + 1, symbols=bool(row.qualname))
            others = [hit for hit in hits if hit[0].id != row.id]
            return row, list(_chosen(others, row.kind if same_type_only else None, None))[:limit]

        def paths(hits: tuple[SymbolRow, list[tuple[SymbolRow, float]]]) -> Iterable[str]:
            return hits[0].path, *(row.path for row, _ in hits[1])

        _, found = await self._answer(find, paths, ref=ref, looks=True)
        return [ScoredNode(node=to_node(row), similarity=score) for row, score in found]

    async def left_out(self) -> list[LeftOut]:
        """The files that are not known, or not all of them, with the reason, by path; without binary ones."""
        return await self._answer(lambda: self._read(list_left_out), lambda found: (), looks=True)

    async def files(self, pattern: str = "") -> list[FileInfo]:
        """The files whose text is known, by path; all, or those that a glob matches."""

        def find() -> list[FileInfo]:
            found = self._read(list_files)
            return [file for file in found if not pattern or glob_matches(pattern, file.path)]

        return await self._answer(find, lambda found: (), looks=True)

    async def structure(self, path: str = "", depth: int = 2) -> Folder:
        """A folder of the project, with what is in it."""
        _check_depth(depth)
        place = path.strip("/").removeprefix("./")
        place = "" if place == "." else place
        files = [file for file in await self.files() if not place or file.path.startswith(f"{place}/")]
        if place and not files:
            raise NotFound("folder", path[:200])
        return build_folder(place, files, depth)

    async def commits_of(self, path: str, *, line: int | None = None, limit: int = 10) -> list[Commit]:
        """The commits that touched a file, or made a line of it what it is, newest first. Raises SourceError too."""
        _check_limit(limit)
        return await asyncio.to_thread(self._mended, lambda: self._commits_of(path, line, limit))

    def contains(self, text: str) -> bool:
        """Whether a symbol or a file has this name, or any word of it stands in the code."""
        with self.store.reading() as sql:
            if find_place(sql, text, "") is not None or find_named(sql, text, 1):
                return True
        return self._text.knows(text)

    def rarity(self, words: Sequence[str]) -> dict[str, float]:
        """How rare each word is in the code; the more, the rarer. 0 for one that stands nowhere."""
        return self._text.rarity(words)

    async def _links(self, ref: str, edge_type: str, depth: int, *, backwards: bool) -> list[Link]:
        types = _edge_types(edge_type)
        _check_depth(depth)

        def find() -> tuple[SymbolRow, list[Reached]]:
            self._link()
            with self.store.reading() as sql:
                start = get_symbol(sql, ref)
                return start, find_linked(sql, start, types, depth, backwards=backwards)

        def paths(got: tuple[SymbolRow, list[Reached]]) -> Iterable[str]:
            return got[0].path, *(each.row.path for each in got[1])

        return to_links(*await self._answer(find, paths, ref=ref, looks=True))

    async def _answer(
        self, find: Callable[[], T], paths: Callable[[T], Iterable[str]], *, ref: str = "", looks: bool = False
    ) -> T:
        return await asyncio.to_thread(self._mended, lambda: self._fresh(find, paths, ref, looks))

    def _mended(self, do: Callable[[], T]) -> T:
        """What a call brings. Where it finds the store damaged, that is built again, and the call made once more: all
        in it is derived. Raises what the call raises."""
        era = self.store.era
        try:
            return do()
        except Corrupted:
            self._mend(era)
            return do()

    def _mend(self, era: int) -> None:
        self.store.rebuild(era)
        self._refresh(None, "linked")

    def _fresh(self, find: Callable[[], T], paths: Callable[[T], Iterable[str]], ref: str, looks: bool) -> T:
        """What is found when none of the files that it is about has changed since it was read. Who chooses among all
        files looks at all of them first, unless that was done just now; what `ref` names is looked at before it is
        said not to be there, once."""
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

    def _look(self) -> bool:
        """Bring all files up to date unless somebody does; whether it was done."""
        if self.is_watched or not self._is_look_due() or self.indexer.is_refreshing:
            return False
        self._refresh(None, "linked")
        return True

    def _is_look_due(self) -> bool:
        return time.monotonic() - self._looked >= UNWATCHED_SECONDS

    def _look_again(self) -> bool:
        """Bring all files up to date before something is said not to be there, unless that was done just now; whether
        it was done. Nobody waits for who reads all files: then it is not said for sure."""
        is_due = time.monotonic() - self._looked_again >= DENIAL_SECONDS
        if self.indexer.is_refreshing or not (is_due if self.is_watched else self._is_look_due()):
            return False
        done = self._refresh(None, "linked")
        self._untold |= {*done.changed, *done.gone} if self.is_watched else set()
        self._looked_again = time.monotonic()
        return True

    def _refresh(self, report: Progress | None, until: Until) -> Indexed:
        done = self.indexer.refresh(report, until=until)
        self._looked = time.monotonic()
        return done

    def _update(self, paths: list[str]) -> list[str]:
        before = self._untold.intersection(paths)
        changed = self.indexer.update(paths)
        self.indexer.embed()  # also what an answer has taken in before
        self._untold -= before
        return sorted({*changed, *before})

    def _close(self) -> None:
        self.indexer.wait()
        self.store.close()

    def _read(self, question: Callable[..., T], *values: object) -> T:
        with self.store.reading() as sql:
            return question(sql, *values)

    def _link(self) -> None:
        """Have the edges of what is known, but do not wait for who reads all files."""
        if not self.indexer.is_linked and not self.indexer.is_refreshing:
            self.indexer.link()

    def _named(self, query: str, limit: int) -> list[tuple[SymbolRow, float]]:
        """Symbols that a query of one word names."""
        name = query.strip()
        if not name or len(name.split()) > 1:
            return []
        exact = self._read(find_named, name, limit)
        longer = self._read(find_prefixed, name, limit) if len(exact) < limit else []
        return [*((row, EXACT) for row in exact), *((row, PREFIX) for row in longer)]

    def _written(self, query: str, limit: int, *, symbols: bool) -> list[tuple[SymbolRow, float]]:
        """Symbols, or files, whose text is about a query."""
        hits = self._text.search(query, limit=limit, symbols=symbols)
        with self.store.reading() as sql:
            found = [(find_place(sql, hit.path, hit.qualname or ""), hit.score) for hit in hits]
        return [(row, score) for row, score in found if row is not None]

    def _locate(self, query: str, limit: int) -> list[Located]:
        hits = self._text.search(query, limit=limit, symbols=False)
        with self.store.reading() as sql:
            return place_hits(sql, query, hits)

    def _commits_of(self, path: str, line: int | None, limit: int) -> list[Commit]:
        root = Path(self.tree.root)
        if line is not None:
            return read_line_history(root, find_origin(root, path, line), limit=limit)
        log = GitLog(self.store, root)
        log.refresh()
        return log.commits_of(path, limit=limit)

    def _source(self, ref: str) -> tuple[SymbolRow, str | None]:
        """A symbol and its lines; None where the file is not as it is known."""
        row = self._read(get_symbol, ref)
        content = read_content(self.tree.root, row.path)
        if content is None or content.blob != row.blob:
            return row, None
        lines = readable_text(content.body).split("\n")[: row.line_end]
        return row, "\n".join(f"{number}: {lines[number - 1]}" for number in range(row.line_start, len(lines) + 1))


def _paths(hits: Iterable[Located]) -> Iterable[str]:
    return (hit.path for hit in hits)


def _chosen(
    hits: Iterable[tuple[SymbolRow, float]], kind: str | None, pattern: str | None
) -> Iterator[tuple[SymbolRow, float]]:
    """Hits of a kind in files that a glob matches, each once."""
    seen: set[int] = set()
    for row, score in hits:
        is_wanted = kind in (None, row.kind) and (not pattern or glob_matches(pattern, row.path))
        if is_wanted and row.id not in seen:
            seen.add(row.id)
            yield row, score


def _edge_types(edge_type: str) -> tuple[str, ...]:
    """Edges as they are stored. Raises InvalidInput."""
    if edge_type == "all":
        return tuple(name for names in EDGE_TYPES.values() for name in names)
    if edge_type not in EDGE_TYPES:
        raise InvalidInput(
            "edge_type", f"{edge_type[:80]!r} is none", hint=f"Types are {', '.join(EDGE_TYPES)} and all"
        )
    return EDGE_TYPES[edge_type]


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT}")


def _check_depth(depth: int) -> None:
    if not 1 <= depth <= MAX_DEPTH:
        raise InvalidInput("depth", f"must be between 1 and {MAX_DEPTH}")
