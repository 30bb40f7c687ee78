"""All that is known of one folder: its code, its history and what others wrote, with what answers from them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import ClewError, NotFound, SourceError
from clew.knowledge.code.blobs import read_content
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.indexer import Indexed
from clew.knowledge.code.opening import open_code
from clew.knowledge.code.runs import Progress
from clew.knowledge.code.watching import CodeWatch
from clew.knowledge.evidence.grounds import KnowledgeGround
from clew.knowledge.history.archive import Archive
from clew.knowledge.history.chronicle import Chronicle
from clew.knowledge.history.decision import Decision
from clew.knowledge.history.decisions import is_told, keep_decisions, read_decisions
from clew.knowledge.history.git_log import GitLog
from clew.knowledge.history.why import Why, blame_why
from clew.knowledge.references.documents import is_document, keep_documents
from clew.knowledge.references.packages import Packages
from clew.knowledge.references.research import Library
from clew.knowledge.resolving.cache import IntentCache
from clew.knowledge.resolving.resolver import MAX_QUESTION, Resolver
from clew.knowledge.resolving.routing import Router
from clew.knowledge.searching import Shelves
from clew.knowledge.shelves import CodeShelf, NodeShelf
from clew.llm.requests import Model
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import NodeGraph
from clew.trail.store import Embedder, Trail

WAIT_SECONDS = 1.5
"""So long an answer waits for what is known."""

_log = logging.getLogger(__name__)


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at everything brought: the code, new commits, and the decisions and documents that are new or have
    changed."""

    code: Indexed
    commits: int
    decisions: int
    documents: int


class Knowledge:
    """Opened by `open_knowledge`, closed by its owner."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        root: Path,
        owner: Principal,
        code: CodeGraph,
        embedder: Embedder | None,
        model: Model | None = None,
    ) -> None:
        self._trail = trail
        self._owner = owner
        self._model = model
        self.root = root
        self.clock = clock
        self.code = code
        self._history = NodeShelf(trail, NodeDomain.HISTORY, owner)
        self._literature = NodeShelf(trail, NodeDomain.ACADEMIC, owner)
        shelf = CodeShelf(code)
        self.shelves: Shelves = {
            NodeDomain.CODE: shelf,
            NodeDomain.HISTORY: self._history,
            NodeDomain.ACADEMIC: self._literature,
        }
        self.resolver = Resolver(
            trail,
            clock,
            self.shelves,
            Router(model),
            IntentCache(clock, embedder),
            model=model,
            ground=KnowledgeGround(shelf, NodeGraph(trail, owner), owner),
            hashes=self._hashes,
        )

    async def gather(self, report: Progress | None = None) -> Gathered:
        """Bring everything up to date: code first, then the commits, decisions and documents."""
        indexed = await self.code.refresh(report)
        commits = await asyncio.to_thread(self._read_commits)
        paths = await self._paths()
        kept = await keep_decisions(self._trail, await self.decisions(), paths, by=self._owner)
        documents = await keep_documents(self._trail, self.root, paths, self.clock, by=self._owner)
        return Gathered(code=indexed, commits=commits, decisions=kept.written, documents=documents.changed)

    async def tell(self, question: str, by: Principal) -> list[str]:
        """What is known that answers a question, a line for each source. Nothing where that takes longer than a
        moment, as it may while all is read for the first time."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                found = await self.resolver.resolve(question[:MAX_QUESTION], by=by)
        except (TimeoutError, ClewError) as error:
            _log.info("nothing is told of what is known: %s", error or "it took too long")
            return []
        return [f"- {line}" for line in found.text.splitlines() if found.sources]

    async def keep_up(self) -> None:
        """Watch the files, and keep what is known as they are, until it is cancelled."""
        async with CodeWatch(self.code, self._note_changes):
            await self.gather()
            await asyncio.Event().wait()

    async def _note_changes(self, paths: Sequence[str], is_bulk: bool) -> None:
        self.resolver.cache.files_changed(paths)
        files = await self._paths()
        if any(map(is_told, paths)) or is_bulk:
            await keep_decisions(self._trail, await self.decisions(), files, by=self._owner)
        if any(map(is_document, paths)) or is_bulk:
            await keep_documents(self._trail, self.root, files, self.clock, by=self._owner)

    async def decisions(self) -> list[Decision]:
        """What the files of the repository tell of decisions."""
        told = [path for path in await self._paths() if is_told(path)]
        return await asyncio.to_thread(self._read_decisions, told)

    async def why(self, path: str, line: int, *, by: Principal) -> Why:
        """What explains a line. Raises NotFound, SourceError."""
        symbol = await self._symbol_at(path, line)
        return await blame_why(
            self.root, path, line, trail=self._trail, by=by, decisions=await self.decisions(), symbol=symbol
        )

    def chronicle(self, by: Principal, session_id: str) -> Chronicle:
        """What was done, as the caller keeps and sees it in a session."""
        return Chronicle(self._trail, by, session_id, self.clock)

    def archive(self, by: Principal) -> Archive:
        """The skills of whoever keeps the history."""
        return Archive(self._trail, by)

    def library(self, by: Principal) -> Library:
        """What others wrote, as the caller sees it."""
        packages = Packages(self._trail, self.clock, self.root, by=self._owner)
        return Library(self._trail, self.clock, by, self.shelves, self._model, packages=packages, root=self.root)

    async def close(self) -> None:
        """Let go of the index. Calling it twice is harmless."""
        await self._history.close()
        await self._literature.close()
        await self.code.close()

    def _read_commits(self) -> int:
        try:
            return GitLog(self.code.store, self.root).refresh().added
        except SourceError:  # a folder without git, or without a commit, has no history to tell
            return 0

    async def _paths(self) -> list[str]:
        return [file.path for file in await self.code.files()]

    def _read_decisions(self, paths: Sequence[str]) -> list[Decision]:
        contents = ((path, read_content(str(self.root), path)) for path in paths)
        return read_decisions((path, content.body) for path, content in contents if content is not None)

    async def _symbol_at(self, path: str, line: int) -> str:
        """The qualname of the innermost symbol around a line; empty where there is none."""
        try:
            found = await self.code.symbols_of(path)
        except NotFound:
            return ""
        around = [each for each in found if (each.line_start or 0) <= line <= (each.line_end or 0)]
        inner = max(around, key=lambda each: each.line_start or 0, default=None)
        return inner.id.partition("#")[2] if inner is not None else ""

    async def _hashes(self, paths: Sequence[str]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for path in paths:
            try:
                found[path] = (await self.code.symbol(path)).content_hash or ""
            except NotFound:
                continue
        return found


def open_knowledge(
    trail: Trail,
    clock: Clock,
    folder: Path,
    root: Path,
    owner: Principal,
    embedder: Embedder | None,
    model: Model | None = None,
) -> Knowledge:
    """What is known of the files below `root`, kept in `folder` and on the trail. Nothing is read yet. Raises
    StorageError."""
    return Knowledge(trail, clock, root, owner, open_code(folder, root, clock, embedder), embedder, model)
