"""The prose of a repository, its documents and what it tells of decisions, on the trail as the files have it now. What
is told of a file is held against the file: what it no longer says, or what no program of this user read in it, is read
anew first or left out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import NotFound
from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.file_hashes import FileHashes
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.evidence.marks import mark_check
from clew.knowledge.history.changelogs import ChangeNote, is_changelog, read_changelog
from clew.knowledge.history.decision import Decision
from clew.knowledge.history.decisions import REPOSITORY, is_told, keep_decisions, read_decisions
from clew.knowledge.references.documents import is_document, keep_documents
from clew.knowledge.told_trail import Consent
from clew.trail.breadcrumb import Breadcrumb
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import Node, ScoredNode
from clew.trail.store import Trail

MANY = 50
"""While more files than these are kept, answers do without those that are not yet."""


class KeptProse(msgspec.Struct, frozen=True, kw_only=True):
    """How many decisions and documents were new or had changed."""

    decisions: int = 0
    documents: int = 0


class _State(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the files by path, and whether all files are known."""

    contents: dict[str, str]
    is_whole: bool


class Prose:
    """The prose of one folder, kept for its owner. `on_decided` is called after decisions were written or removed.
    `consent` says whether all else on the trail may be told."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        root: Path,
        owner: Principal,
        code: CodeGraph,
        on_decided: Callable[[], None],
        consent: Consent,
    ) -> None:
        self._consent = consent
        self._trail, self._clock, self._root, self._owner = trail, clock, root, owner
        self._code = code
        self._on_decided = on_decided
        self._contents = FileHashes(code, lambda path: is_told(path) or is_document(path))
        self._kept: _State | None = None
        self._doubted: set[str] = set()
        """Paths of files that the trail tells of in another way than was kept here."""
        self._turn = asyncio.Lock()
        self._is_filling = False

    async def keep(self) -> KeptProse:
        """Let the trail have all of it as the files are now."""
        async with self._turn:
            return await self._keep(await self._look(), everything=True)

    async def catch_up(self) -> None:
        """The same for what has changed since then; cheap where nothing has. Nothing is waited for while many files
        are kept, or all are read for the first time."""
        if self._is_filling or (self._kept is None and self._code.indexer.is_refreshing):
            return
        async with self._turn:
            state = await self._look()
            if state != self._kept or self._doubted:
                await self._keep(state, everything=self._kept is None or self._kept.is_whole != state.is_whole)

    async def hold(self, find: Callable[[], Awaitable[list[ScoredNode]]]) -> list[ScoredNode]:
        """What is found when all that it tells of files is what they say now. What cannot be had so is left out; what
        only claims to be from a file is told without that claim, if it may be told at all."""
        await self.catch_up()
        found = await find()
        fallen = await self._fallen(found)
        if any(map(_is_prose, fallen)):
            self._doubted |= {node.path for node in fallen if node.path}
            await self.catch_up()
            found = await find()
            fallen = await self._fallen(found)
        lost = {node.id for node in fallen}
        kept = [each for each in found if each.node.id not in lost or not _is_prose(each.node)]
        return await self._told([_unplaced(each) if each.node.id in lost else each for each in kept])

    async def decisions(self) -> list[Decision]:
        """What the files of the repository tell of decisions."""
        told = [file.path for file in await self._code.files() if is_told(file.path)]
        return await asyncio.to_thread(self._read_decisions, told)

    async def changes(self) -> list[ChangeNote]:
        """What the changelogs of the repository tell, in the order of their files."""
        told = [file.path for file in await self._code.files() if is_changelog(file.path)]
        return await asyncio.to_thread(self._read_changes, told)

    async def _look(self) -> _State:
        return _State(contents=await self._contents.now(), is_whole=self._code.is_whole)

    async def _keep(self, state: _State, *, everything: bool) -> KeptProse:
        """Have on the trail what differs from the state that is kept, or everything."""
        before = self._kept.contents if self._kept is not None else {}
        anew = frozenset(self._doubted)
        changed = anew.union(path for path, _ in state.contents.items() ^ before.items())
        self._is_filling = len(changed) > MANY
        try:
            files = [file.path for file in await self._code.files()]
            kept = KeptProse(
                decisions=await self._keep_decisions(state, files) if everything or any(map(is_told, changed)) else 0,
                documents=await self._keep_documents(state, files, anew)
                if everything or any(map(is_document, changed))
                else 0,
            )
        finally:
            self._is_filling = False
        self._kept = state
        self._doubted -= anew
        return kept

    async def _keep_decisions(self, state: _State, files: Sequence[str]) -> int:
        """Nothing is removed while not all files are known."""
        told = await asyncio.to_thread(self._read_decisions, sorted(filter(is_told, state.contents)))
        kept = await keep_decisions(self._trail, told, files, by=self._owner, drops=state.is_whole)
        if kept.written or kept.removed:
            self._on_decided()
        return kept.written

    async def _keep_documents(self, state: _State, files: Sequence[str], anew: Collection[str]) -> int:
        kept = await keep_documents(
            self._trail,
            self._root,
            files,
            self._clock,
            by=self._owner,
            blobs=state.contents,
            anew=anew,
            drops=state.is_whole,
        )
        return kept.changed

    async def _fallen(self, found: Iterable[ScoredNode]) -> list[Node]:
        """Those of the nodes that claim to be from a file and are not what it says now, or not written here."""
        claims = [each.node for each in found if each.node.path and each.node.domain is not NodeDomain.CODE]
        if not claims:
            return []
        contents, is_marked = await self._contents.now(), mark_check()
        fallen = []
        for node in claims:
            present = contents.get(path := str(node.path), "")
            if not present and not self._code.is_whole:
                present = await self._contents.of(path)
            if node.content_hash != present or not await self._is_ours(node, is_marked):
                fallen.append(node)
        return fallen

    async def _told(self, found: list[ScoredNode]) -> list[ScoredNode]:
        """Those of the nodes that may be told: without consent none that stands on the trail, unless it was written
        here from a file."""
        if await self._consent.is_given():
            return found
        is_marked = mark_check()
        return [each for each in found if await self._is_ours(each.node, is_marked, elsewhere=True)]

    async def _is_ours(self, node: Node, is_marked: Callable[[Breadcrumb], bool], *, elsewhere: bool = False) -> bool:
        """Whether a program of this user wrote a node from a file; `elsewhere` is said of one that is not on the
        trail: it was removed meanwhile, or is of code or commits."""
        try:
            return is_marked(await self._trail.records.get(node.id, by=self._owner))
        except NotFound:
            return elsewhere

    def _read_changes(self, paths: Iterable[str]) -> list[ChangeNote]:
        contents = ((path, read_content(str(self._root), path)) for path in paths)
        return [note for path, held in contents if held is not None for note in read_changelog(path, held.body)]

    def _read_decisions(self, paths: Iterable[str]) -> list[Decision]:
        contents = ((path, read_content(str(self._root), path)) for path in paths)
        return read_decisions((path, content.body) for path, content in contents if content is not None)


def _is_prose(node: Node) -> bool:
    return node.source == REPOSITORY


def _unplaced(found: ScoredNode) -> ScoredNode:
    node = msgspec.structs.replace(found.node, path=None, line_start=None, line_end=None, content_hash=None)
    return msgspec.structs.replace(found, node=node)
