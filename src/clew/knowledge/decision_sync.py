"""Keeps decision records on the trail as the files of the repository state them now, and checks nodes that claim to
come from a file: a claim that the file no longer bears out, or that no program of this user wrote, is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.file_hashes import FileHashes
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.consented_trail import Consent
from clew.knowledge.evidence.provenance import mark_check
from clew.knowledge.history.changelog import ChangeNote, is_changelog, read_changelog
from clew.knowledge.history.decisions import REPOSITORY, Decision, is_adr, is_told, keep_decisions, read_decisions
from clew.trail.breadcrumb import Breadcrumb
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import Node, ScoredNode
from clew.trail.store import Trail


class _State(msgspec.Struct, frozen=True, kw_only=True):
    """The blobs of the files by path, and whether all files are known."""

    contents: dict[str, str]
    is_whole: bool


class DecisionSync:
    """The decisions and changelogs in the files of one folder. `on_change` is called after decisions were written or
    removed; `consent` says whether other nodes of the trail may be shown."""

    def __init__(
        self,
        trail: Trail,
        root: Path,
        owner: Principal,
        code: CodeGraph,
        on_change: Callable[[], None],
        consent: Consent,
    ) -> None:
        self._trail, self._root, self._owner = trail, root, owner
        self._code, self._on_change, self._consent = code, on_change, consent
        self._contents = FileHashes(code, lambda path: is_told(path) or is_changelog(path))
        self._synced: _State | None = None
        self._doubted: set[str] = set()
        """Paths whose nodes on the trail differ from what was synced."""
        self._changes: tuple[dict[str, str], list[ChangeNote]] | None = None
        self._lock = asyncio.Lock()

    async def sync(self) -> int:
        """Write all decisions as the files state them now; return how many were new or changed."""
        async with self._lock:
            return await self._sync(await self._look())

    async def catch_up(self) -> None:
        """The same for files that changed since; cheap where none did. Does not wait while all files are read for the
        first time."""
        if self._synced is None and self._code.indexer.is_refreshing:
            return
        async with self._lock:
            state = await self._look()
            if state != self._synced or self._doubted:
                await self._sync(state)

    async def hold(self, find: Callable[[], Awaitable[list[ScoredNode]]]) -> list[ScoredNode]:
        """What `find` returns once its claims about files are true. A decision that is out of date is synced first and
        dropped if that does not help; any other node loses a claim that its file does not bear out."""
        await self.catch_up()
        found = await find()
        failed = await self._failed(found)
        if any(map(_is_synced, failed)):
            self._doubted |= {node.path for node in failed if node.path}
            await self.catch_up()
            found = await find()
            failed = await self._failed(found)
        lost = {node.id for node in failed}
        kept = [each for each in found if each.node.id not in lost or not _is_synced(each.node)]
        return await self._allowed([_without_place(each) if each.node.id in lost else each for each in kept])

    async def decisions(self) -> list[Decision]:
        """The decisions that the files of the repository state, changelogs included."""
        paths = [file.path for file in await self._code.files() if is_told(file.path)]
        return await asyncio.to_thread(self._read_decisions, paths)

    async def changes(self) -> list[ChangeNote]:
        """The notes of all changelogs, in the order of their files; read again when one of them changes."""
        contents = {path: blob for path, blob in (await self._contents.now()).items() if is_changelog(path)}
        if self._changes is None or self._changes[0] != contents:
            self._changes = contents, await asyncio.to_thread(self._read_changes, sorted(contents))
        return self._changes[1]

    async def _look(self) -> _State:
        contents = {path: blob for path, blob in (await self._contents.now()).items() if is_adr(path)}
        return _State(contents=contents, is_whole=self._code.is_whole)

    async def _sync(self, state: _State) -> int:
        """Nothing is removed while not all files are known."""
        doubted = frozenset(self._doubted)
        files = [file.path for file in await self._code.files()]
        decisions = await asyncio.to_thread(self._read_decisions, sorted(state.contents))
        done = await keep_decisions(self._trail, decisions, files, by=self._owner, drops=state.is_whole)
        if done.written or done.removed:
            self._on_change()
        self._synced = state
        self._doubted -= doubted
        return done.written

    async def _failed(self, found: Iterable[ScoredNode]) -> list[Node]:
        """Nodes that claim to come from a file whose content is another now, or that this user's programs did not
        write."""
        claims = [each.node for each in found if each.node.path and each.node.domain is not NodeDomain.CODE]
        if not claims:
            return []
        is_marked = mark_check()
        blobs = {path: await self._contents.of(path) for path in {str(node.path) for node in claims}}
        return [
            node
            for node in claims
            if node.content_hash != blobs[str(node.path)] or not await self._is_ours(node, is_marked)
        ]

    async def _allowed(self, found: list[ScoredNode]) -> list[ScoredNode]:
        """Without consent, only nodes that this user's programs wrote from a file."""
        if await self._consent.is_given():
            return found
        is_marked = mark_check()
        return [each for each in found if await self._is_ours(each.node, is_marked, elsewhere=True)]

    async def _is_ours(self, node: Node, is_marked: Callable[[Breadcrumb], bool], *, elsewhere: bool = False) -> bool:
        """Whether a program of this user wrote a node from a file; `elsewhere` is the answer for a node that is not on
        the trail: it was removed meanwhile, or is of code or commits."""
        try:
            return is_marked(await self._trail.records.get(node.id, by=self._owner))
        except NotFound:
            return elsewhere

    def _read_changes(self, paths: Iterable[str]) -> list[ChangeNote]:
        contents = ((path, read_content(str(self._root), path)) for path in paths)
        return [note for path, held in contents if held is not None for note in read_changelog(path, held.body)]

    def _read_decisions(self, paths: Sequence[str]) -> list[Decision]:
        contents = ((path, read_content(str(self._root), path)) for path in paths)
        return read_decisions((path, content.body) for path, content in contents if content is not None)


def _is_synced(node: Node) -> bool:
    return node.source == REPOSITORY


def _without_place(found: ScoredNode) -> ScoredNode:
    node = msgspec.structs.replace(found.node, path=None, line_start=None, line_end=None, content_hash=None)
    return msgspec.structs.replace(found, node=node)
