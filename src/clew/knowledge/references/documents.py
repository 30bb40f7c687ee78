"""The documents of a repository as references: README, docs folders and other prose, a node for each section, with an
edge to each file of code that a section names. Decision records and changelogs are not among them: they are history."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.knowledge.code.file_content import blob_id, read_content, readable_text
from clew.knowledge.code.path_kinds import TEST, kind_of
from clew.knowledge.code.secret_files import is_text, looks_secret
from clew.knowledge.history.anchors import ensure_anchors
from clew.knowledge.history.decisions import is_told
from clew.knowledge.references.keeping import Document, Kept, drop, keep, read_heads
from clew.knowledge.references.sections import Piece, markdown_pieces, plain_pieces, restructured_pieces
from clew.skills.formats.telling import Telling
from clew.trail.edge import Edge, EdgeType
from clew.trail.kinds import NodeType, Trust, Verification
from clew.trail.store import Trail

COLLECTION = "repository"
MAX_DOCUMENTS = 2_000
MAX_BYTES = 1_000_000
MAX_LINKS = 20
"""Files of code that one section is linked to."""
AT_ONCE = 16
"""Documents that are read and written at the same time: the trail writes together what comes together."""

_PROSE = re.compile(r"\.(?:md|markdown|mdx|rst|txt)$", re.IGNORECASE)
_README = re.compile(r"(?:^|/)readme(?:\.(?:md|markdown|mdx|rst|txt))?$", re.IGNORECASE)
_DOCS = re.compile(r"(?:^|/)(?:docs?|documentation|guides?|tutorials?|manual|wiki)/", re.IGNORECASE)
_NO_PROSE = re.compile(
    r"(?:^|/)(?:requirements[^/]*|constraints[^/]*|cmakelists|robots|top_level|sources|license[^/]*|licence[^/]*"
    r"|copying[^/]*|notice[^/]*|authors|contributors|[^/]*lock)\.(?:txt|md|rst)$|(?:^|/)requirements/[^/]*\.txt$",
    re.IGNORECASE,
)
_LESSON = re.compile(
    r"(?:^|[/_-])(?:tutorials?|getting[-_]?started|quick[-_]?start|walk[-_]?through|how[-_]?to|lessons?)(?:[/._-]|$)",
    re.IGNORECASE,
)
_ADVICE = re.compile(r"(?:^|[/_-])best[-_]?practices?(?:[/._-]|$)", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w/.-])((?:[\w.-]+/){1,12}[\w.-]+\.[A-Za-z]\w{0,5})(?![\w/])")


class KeptDocuments(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the documents of a repository: how many there are, how many were read anew or are gone, nodes
    written, edges drawn, and what was left out and why."""

    documents: int
    changed: int
    removed: int
    nodes: int
    edges: int
    left_out: dict[str, str] = {}


class _Brought(NamedTuple):
    """What became of one document: nodes written and edges drawn, or why it is left out."""

    path: str
    is_here: bool
    nodes: int = 0
    edges: int = 0
    left_out: str = ""


def is_document(path: str) -> bool:
    """Whether a path looks like that of prose for people."""
    if _README.search(path):
        return True
    if not _PROSE.search(path) or _NO_PROSE.search(path) or is_told(path):
        return False
    return not path.lower().endswith(".txt") or not kind_of(path) & TEST


def type_of(path: str) -> NodeType:
    """What kind of document a path says that it is."""
    if _ADVICE.search(path):
        return NodeType.BEST_PRACTICE
    return NodeType.TUTORIAL if _LESSON.search(path) else NodeType.DOCUMENTATION


def read_document(path: str, body: bytes, clock: Clock) -> Document:
    """A file of the repository, cut into sections, without keys."""
    hash = blob_id(body)
    return Document(
        key=f"document:{path}",
        collection=COLLECTION,
        state=hash,
        node_type=type_of(path),
        pieces=pieces_of(path, readable_text(body)),
        fields={
            "path": path,
            "source": "repository",
            "content_hash": hash,
            "timestamp": clock.now(),
            "verification": Verification.CODE,
            "trust": Trust.STANDARD if type_of(path) is NodeType.DOCUMENTATION else Trust.ACADEMIC,
        },
    )


def pieces_of(path: str, text: str) -> list[Piece]:
    """The sections of a text, by the ending of its path."""
    name, ending = path, path.lower().rpartition(".")[2]
    match ending:
        case "md" | "markdown" | "mdx":
            return markdown_pieces(text, name)
        case "rst":
            return restructured_pieces(text, name)
        case _:
            return plain_pieces(text, name)


async def keep_documents(
    trail: Trail,
    root: Path,
    paths: Iterable[str],
    clock: Clock,
    *,
    by: Principal,
    blobs: Mapping[str, str] = {},
    anew: Collection[str] = (),
    drops: bool = True,
) -> KeptDocuments:
    """Let the trail have the documents among the files of a repository as they are now. `paths` are all its files:
    those that git ignores are not among them; what tells agents what to do is no document. Documents that are gone are
    removed, unless there may be more files than these; an unchanged one costs no write and, where `blobs` has the id of
    its content, is not read, unless it is to be read `anew`."""
    known, place = frozenset(paths), os.path.realpath(root)
    wanted = await asyncio.to_thread(_choose, place, known)
    left_out = dict.fromkeys(wanted[MAX_DOCUMENTS:], f"over {MAX_DOCUMENTS:,} documents")
    heads = await read_heads(trail, COLLECTION, by=by)

    async def bring(path: str) -> _Brought:
        key = f"document:{path}"
        state = heads[key].state if key in heads and path not in anew else ""
        found = await _read_changed(place, path, clock, state, blobs.get(path))
        if found is None or isinstance(found, str):
            return _Brought(path, is_here=found is None, left_out=found or "")
        kept = await keep(trail, found, by=by)
        edges = await _link(trail, found, kept, known, by, is_new=key not in heads)
        return _Brought(path, is_here=True, nodes=kept.written, edges=edges)

    brought: list[_Brought] = []
    for first in range(0, min(len(wanted), MAX_DOCUMENTS), AT_ONCE):
        brought += await asyncio.gather(*map(bring, wanted[first : min(first + AT_ONCE, MAX_DOCUMENTS)]))
    here = {f"document:{each.path}" for each in brought if each.is_here}
    gone = [key for key in heads if key not in here] if drops else []
    await drop(trail, gone, by=by)
    return KeptDocuments(
        documents=len(here),
        changed=sum(each.nodes > 0 for each in brought),
        removed=len(gone),
        nodes=sum(each.nodes for each in brought),
        edges=sum(each.edges for each in brought),
        left_out=left_out | {each.path: each.left_out for each in brought if each.left_out},
    )


async def _read_changed(root: str, path: str, clock: Clock, state: str, blob: str | None) -> Document | str | None:
    """A document that is not in the state that is kept; None where it is. Why it is left out, or nothing where there is
    none."""
    if state and state == blob:
        return None
    found = await asyncio.to_thread(_read, root, path)
    if isinstance(found, str):
        return found
    if state == blob_id(found):
        return None
    document = await asyncio.to_thread(read_document, path, found, clock)
    return document if document.pieces else "has no words"


def _choose(root: str, paths: Iterable[str]) -> list[str]:
    """The documents among files, the most telling first."""
    telling = Telling(root)
    return sorted((path for path in paths if is_document(path) and not telling.tells(path)), key=_order)


def _read(root: str, path: str) -> bytes | str:
    """The content of a file, or why it is left out; nothing where there is none."""
    content = read_content(root, path)
    if content is None:
        return ""
    if content.left_out:
        return content.left_out
    if len(content.body) > MAX_BYTES:
        return f"has over {MAX_BYTES:,} bytes"
    if not is_text(content.body):
        return "is binary"
    return looks_secret(path, content.body) or (content.body if content.body.strip() else "is empty")


async def _link(
    trail: Trail, document: Document, kept: Kept, known: frozenset[str], by: Principal, *, is_new: bool
) -> int:
    """Draw an edge from each section to the files that it names, and take away those to files that it named before."""
    type, drawn = EdgeType.DOCUMENTS.label, 0
    own = document.fields.get("path")
    for id, piece in zip(kept.ids, document.pieces, strict=True):
        named = [path for path in dict.fromkeys(_PATH.findall(piece.text)) if path in known and path != own]
        if is_new and not named:
            continue
        anchors = await ensure_anchors(trail, named[:MAX_LINKS], by=by)
        present = {edge.target for edge in await trail.edges.of(id, by=by, types=[type], direction="outgoing")}
        for target in present.difference(anchors):
            await trail.edges.remove(id, target, type, by=by)
        new = [Edge(source=id, target=each, type=type) for each in anchors if each not in present]
        drawn += len(await trail.edges.add(new, by=by, replace=True)) if new else 0
    return drawn


def _order(path: str) -> tuple[int, int, str]:
    """READMEs first, then docs folders, then the rest; of each, what is nearest to the root."""
    rank = 0 if _README.search(path) else 1 if _DOCS.search(path) else 2
    return rank, path.count("/"), path
