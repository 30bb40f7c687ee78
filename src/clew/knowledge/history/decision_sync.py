"""Keeps decision records on the trail as the files of the repository state them now, with edges to the code that they
name and to the records that they supersede. Also checks nodes that claim to come from a file: a claim that the file no
longer bears out, or that no program of this user wrote, is dropped."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.errors import CycleRefused, NotFound
from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.file_hashes import FileHashes
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.evidence.signatures import mark_check, with_marks
from clew.knowledge.history.changelog import ChangeNote, is_changelog, read_changelog
from clew.knowledge.history.decisions import Decision, find_superseded, is_adr, read_adr
from clew.knowledge.history.links import link_code
from clew.knowledge.told_trail import Consent
from clew.knowledge.upsert import keyed_id
from clew.skills.discovery.mirroring import Mirrored, mirror
from clew.trail.breadcrumb import Breadcrumb, Draft
from clew.trail.edge import Edge, EdgeType
from clew.trail.kinds import NodeDomain, NodeType, Trust, Verification
from clew.trail.node import domain_tag, type_tag
from clew.trail.nodes import SCHEMA, Node, NodeFields, ScoredNode, build_node
from clew.trail.selector import ContextMatch, Selector
from clew.trail.store import Trail

REPOSITORY = "repository"
"""The source of decisions that were read from files of the repository."""
_PATH = re.compile(r"(?<![\w/.-])((?:[\w-]+/){1,12}[\w.-]+\.[A-Za-z]\w{0,5})(?![\w/])")
_READ_FROM_FILES = Selector(
    schema_name=SCHEMA,
    all_tags=(domain_tag(NodeDomain.HISTORY), type_tag(NodeType.DECISION)),
    context_match=(ContextMatch(path="source", value=REPOSITORY),),
)


async def keep_decisions(
    trail: Trail, decisions: Sequence[Decision], paths: Iterable[str] = (), *, by: Principal
) -> Mirrored:
    """Make the trail hold exactly these decision records as nodes. `paths` are the files of the repository; a decision
    gets an edge to each that it names."""
    superseded = {node_id(by, old): node_id(by, new) for old, new in find_superseded(decisions)}
    drafts = with_marks(_draft(each, node_id(by, each), superseded) for each in decisions)
    done = await mirror(trail, drafts, _READ_FROM_FILES, by=by)
    if done.created or done.updated:
        known = frozenset(paths)
        for decision in decisions:
            named = [path for path in dict.fromkeys(_PATH.findall(decision.text)) if path in known]
            await link_code(trail, node_id(by, decision), named, by=by)
        for old, new in superseded.items():
            edge = Edge(source=new, target=old, type=EdgeType.SUPERSEDES.label)
            with suppress(CycleRefused):  # the records stated the opposite before
                await trail.edges.add([edge], by=by, replace=True)
    return done


def node_id(by: Principal, decision: Decision) -> str:
    """The id of the node of a decision; it stays while the text is edited."""
    return keyed_id(by.owner_id, f"decision:{decision.source}")


def _draft(decision: Decision, id: str, superseded: Mapping[str, str]) -> Draft:
    known = {
        "kind": "adr",
        "status": decision.status,
        "number": decision.number,
        "day": decision.day.isoformat() if decision.day else "",
    }
    fields: NodeFields = {
        "category": "decision",
        "source": REPOSITORY,
        "content_hash": decision.hash,
        "trust": Trust.RECENT,
        "verification": Verification.CODE,
        "metadata": {name: value for name, value in known.items() if value},
        "path": decision.source,
        "line_start": decision.line,
        **({"timestamp": datetime.combine(decision.day, time(), UTC)} if decision.day else {}),
        "id": id,
    }
    draft = build_node(decision.title[:500], NodeDomain.HISTORY, NodeType.DECISION, decision.text, fields)
    later = {"superseded_by": superseded[id]} if id in superseded else {}
    return msgspec.structs.replace(draft, context={**draft.context, **later})


class DecisionSync:
    """The decision records and changelogs in the files of one folder. `on_change` is called after decisions were
    written or removed; `consent` says whether other nodes of the trail may be shown."""

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
        self._files = FileHashes(code, lambda path: is_adr(path) or is_changelog(path))
        self._synced: dict[str, str] | None = None
        """The blobs of the decision records on the trail, by path."""
        self._doubted: set[str] = set()
        """Paths whose nodes on the trail differ from what was synced."""
        self._changes: tuple[dict[str, str], list[ChangeNote]] = ({}, [])
        self._notes: dict[str, tuple[str, list[ChangeNote]]] = {}
        """Blob and notes of each changelog by path."""
        self._lock = asyncio.Lock()

    async def sync(self) -> int:
        """Write all decisions as the files state them now; return how many were new or changed."""
        async with self._lock:
            return await self._sync(await self._blobs(is_adr))

    async def catch_up(self) -> None:
        """The same for files that changed since; cheap where none did. Does not wait while all files are read for the
        first time."""
        if self._synced is None and self._code.indexer.is_refreshing:
            return
        async with self._lock:
            blobs = await self._blobs(is_adr)
            if blobs != self._synced or self._doubted:
                await self._sync(blobs)

    async def hold(self, find: Callable[[], Awaitable[list[ScoredNode]]]) -> list[ScoredNode]:
        """The result of `find` once its claims about files are true. A decision that is out of date is synced first and
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
        """The decisions that the records of the repository state."""
        return await asyncio.to_thread(self._read_decisions, sorted(await self._blobs(is_adr)))

    async def changes(self) -> list[ChangeNote]:
        """The notes of all changelogs, in the order of their files; the same list until one of them changes."""
        blobs = await self._blobs(is_changelog)
        if self._changes[0] != blobs:
            self._notes = await asyncio.to_thread(self._read_notes, blobs)
            self._changes = blobs, [note for path in sorted(blobs) for note in self._notes[path][1]]
        return self._changes[1]

    async def _blobs(self, is_wanted: Callable[[str], bool]) -> dict[str, str]:
        return {path: blob for path, blob in (await self._files.now()).items() if is_wanted(path)}

    async def _sync(self, blobs: dict[str, str]) -> int:
        """Does nothing until all files are known: it would remove decisions whose files are still to be read."""
        if not self._code.is_whole:
            return 0
        doubted = frozenset(self._doubted)
        files = [file.path for file in await self._code.files()]
        decisions = await asyncio.to_thread(self._read_decisions, sorted(blobs))
        done = await keep_decisions(self._trail, decisions, files, by=self._owner)
        if done.created or done.updated or done.deleted:
            self._on_change()
        self._synced = blobs
        self._doubted -= doubted
        return done.created + done.updated

    async def _failed(self, found: Iterable[ScoredNode]) -> list[Node]:
        """Nodes that claim to come from a file whose content is another now, or that this user's programs did not
        write."""
        claims = [each.node for each in found if each.node.path and each.node.domain is not NodeDomain.CODE]
        if not claims:
            return []
        is_marked = mark_check()
        blobs = {path: await self._files.of(path) for path in {str(node.path) for node in claims}}
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

    def _read_notes(self, blobs: Mapping[str, str]) -> dict[str, tuple[str, list[ChangeNote]]]:
        held = {path: self._notes[path] for path, blob in blobs.items() if self._notes.get(path, ("",))[0] == blob}
        for path in blobs.keys() - held.keys():
            content = read_content(str(self._root), path)
            held[path] = blobs[path], read_changelog(path, content.body) if content is not None else []
        return held

    def _read_decisions(self, paths: Sequence[str]) -> list[Decision]:
        contents = ((path, read_content(str(self._root), path)) for path in paths)
        found = (read_adr(path, content.body) for path, content in contents if content is not None)
        return [decision for decision in found if decision is not None]


def _is_synced(node: Node) -> bool:
    return node.source == REPOSITORY


def _without_place(found: ScoredNode) -> ScoredNode:
    node = msgspec.structs.replace(found.node, path=None, line_start=None, line_end=None, content_hash=None)
    return msgspec.structs.replace(found, node=node)
