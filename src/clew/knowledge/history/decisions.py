"""Decisions of a repository, read from its decision records (Nygard's form, MADR, run-in headings) and kept on the
trail as the files state them now, with edges to the code that they name and to the records that they supersede. Also
checks nodes that claim to come from a file: a claim that no longer matches its file, or that no program of this user
wrote, is dropped."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.errors import CycleRefused, NotFound
from clew.fences import clean
from clew.knowledge.code.file_content import blob_id, read_content
from clew.knowledge.code.files import is_changelog
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.evidence.provenance import mark_check, with_marks
from clew.knowledge.history.changelog import ChangeNote, find_date, read_changelog, read_heading
from clew.knowledge.history.links import link_code
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_store import SCHEMA, Node, NodeFields, ScoredNode, build_node, domain_tag, type_tag
from clew.knowledge.upsert import keyed_id
from clew.secrecy import mask_document
from clew.skills.discovery.mirror import Mirrored, mirror
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.edge import Edge, EdgeType
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail

REPOSITORY = "repository"
"""The source of decisions that were read from files of the repository."""
_PATH = re.compile(r"(?<![\w/.-])((?:[\w-]+/){1,12}[\w.-]+\.[A-Za-z]\w{0,5})(?![\w/])")
_READ_FROM_FILES = Selector(
    schema_name=SCHEMA,
    all_tags=(domain_tag(NodeDomain.HISTORY), type_tag(NodeType.DECISION)),
    context_match=(ContextMatch(path="source", value=REPOSITORY),),
)
MAX_SIZE = 500_000
MAX_PART = 8_000
_FOLDER = re.compile(r"(?:^|/)(?:adrs?|decisions?|decision[-_]records?|architecture[-_]decisions?)/", re.IGNORECASE)
_OTHER = re.compile(r"(?:^|[-_/])(?:readme|index|template|adr-template|toc)\.md$|/template", re.IGNORECASE)
_RUN_IN = re.compile(r"\*\*([A-Z][A-Za-z ]{2,40}?)[.:]\*\*[.:]?\s*(.*)")
_FIELD = re.compile(r"\s*(?:[*-]\s+)?\**(status|date|supersedes|superseded[ -]by)\**\s*:\**\s*(.*)", re.IGNORECASE)
_NUMBER = re.compile(r"(?:ADR[- ]?)?0*(\d{1,5})\s*[.:—–-]?\s+", re.IGNORECASE)
_FILE_NUMBER = re.compile(r"(?:adr[-_])?0*(\d{1,5})[-_]", re.IGNORECASE)
_REPLACES = re.compile(r"(?<!\w)(?:supersedes|replaces)\b:?\s*([^\n;]+)", re.IGNORECASE)
_REPLACED = re.compile(r"(?:superseded|replaced)\s+by\b:?\s*([^\n;]+)", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]]{1,200})\]\(([^)\s]{1,300})[^)]{0,100}\)")
_FENCE = re.compile(r"\s*(```|~~~)")

_SECTIONS = {
    "context": ("context", "problem", "background", "issue", "motivation", "context and problem statement"),
    "decision": ("decision", "decision outcome", "choice", "solution", "resolution", "decisions"),
    "consequences": ("consequences", "cost", "costs", "implications", "positive consequences", "negative consequences"),
    "status": ("status",),
}
_PARTS = {alias: name for name, aliases in _SECTIONS.items() for alias in aliases}
_DIGITS = re.compile(r"\d+")
_IsWanted = Callable[[str], bool]


class DecisionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and its place: the path `source`, a line from 1, and the git blob id `hash` of the file. `supersedes`
    holds numbers, titles or files as they were written."""

    title: str
    source: str
    line: int
    hash: str
    number: str = ""
    status: str = ""
    day: date | None = None
    context: str = ""
    decision: str = ""
    consequences: str = ""
    supersedes: tuple[str, ...] = ()
    superseded_by: str = ""

    @property
    def cited(self) -> str:
        return f"{self.source}:{self.line}"

    @property
    def text(self) -> str:
        parts = (self.title, self.context, self.decision, self.consequences)
        return "\n\n".join(part for part in parts if part)

    def mentions(self, name: str) -> bool:
        """Whether the text has a name as a whole word."""
        return bool(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w-])", self.text))


def is_adr(path: str) -> bool:
    """Whether a path looks like that of a decision record."""
    return path.endswith(".md") and _FOLDER.search(path) is not None and _OTHER.search(path) is None


def read_adr(path: str, content: bytes) -> DecisionRecord | None:
    """The decision that a file records. None without title or decision, and for a file over MAX_SIZE."""
    if len(content) > MAX_SIZE:
        return None
    lines = clean(mask_document(content.decode(errors="replace"))).split("\n")
    parts: dict[str, list[str]] = {"fields": []}
    title, at = "", 0
    for number, name, text in _parts(lines):
        if name == "title" and not title:
            title, at = text, number
        elif name != "title":
            parts.setdefault(name, []).append(text)
    joined = {name: "\n".join(texts).strip()[:MAX_PART] for name, texts in parts.items()}
    if not title or not (joined.get("decision") or joined.get("context")):
        return None
    return _build(path, content, title, at, joined)


def _parts(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Line number, name of the part (or `title`) and text of each line."""
    part, is_code, is_front = "fields", False, bool(lines) and lines[0].strip() == "---"
    for number, line in enumerate(lines, 1):
        if is_front:
            is_front = number == 1 or line.strip() != "---"
            yield number, "fields", line
            continue
        is_code ^= _FENCE.match(line) is not None
        heading = read_heading(line) if not is_code else None
        if heading and heading.level == 1:
            yield number, "title", heading.text
        elif heading:
            part = _PARTS.get(heading.text.strip(" .:").lower(), "other")
        elif run_in := _RUN_IN.match(line) if not is_code else None:
            part = _PARTS.get(run_in[1].strip().lower(), "other")
            yield number, part, run_in[2]
        else:
            yield number, part, line


def _build(path: str, content: bytes, title: str, line: int, parts: Mapping[str, str]) -> DecisionRecord:
    numbered = _NUMBER.match(title)
    in_name = _FILE_NUMBER.match(path.rpartition("/")[2])
    head = map(_FIELD.match, parts["fields"].split("\n")[:60])
    fields = {found[1].lower().replace("-", " "): found[2].strip() for found in head if found}
    said = _LINK.sub(r"\1 \2", f"{fields.get('status', '')}\n{parts.get('status', '')}")
    replaced = fields.get("superseded by") or next((found[1] for found in _REPLACED.finditer(said)), "")
    replaces = [fields["supersedes"]] if "supersedes" in fields else [found[1] for found in _REPLACES.finditer(said)]
    status = re.match(r"\W*([a-z]+)", said.strip().lower())
    return DecisionRecord(
        title=title[numbered.end() :] if numbered and numbered.end() < len(title) else title,
        source=path,
        line=line,
        hash=blob_id(content),
        number=numbered[1] if numbered else in_name[1] if in_name else "",
        status=status[1] if status else "",
        day=find_date(fields.get("date", "")) or find_date(said),
        context=parts.get("context", ""),
        decision=parts.get("decision", ""),
        consequences=parts.get("consequences", ""),
        supersedes=tuple(text.strip() for text in replaces if text.strip()),
        superseded_by=replaced.strip(),
    )


def find_superseded(records: Sequence[DecisionRecord]) -> list[tuple[DecisionRecord, DecisionRecord]]:
    """Pairs of a record and the later one that supersedes it: those that later ones name, and those that name a later
    one. Where records claim to replace each other, the first claim counts."""
    claims = [(old, new) for new in records for name in new.supersedes if (old := _named(name, records, new))]
    claims += [(old, new) for old in records if (new := _named(old.superseded_by, records, old))]
    later: dict[str, DecisionRecord] = {}
    for old, new in claims:
        end = new
        while end.source in later:
            end = later[end.source]
        if end.source != old.source:
            later.setdefault(old.source, new)
    return [(old, later[old.source]) for old in records if old.source in later]


def _named(name: str, records: Sequence[DecisionRecord], by: DecisionRecord) -> DecisionRecord | None:
    """The record of the same folder that a text names by file, number or title."""
    folder = by.source.rpartition("/")[0]
    near = [each for each in records if each is not by and each.source.rpartition("/")[0] == folder]
    lowered = name.lower()
    for each in near:
        if each.source.rpartition("/")[2].lower() in lowered or (len(each.title) > 3 and each.title.lower() in lowered):
            return each
    numbers = {found.lstrip("0") for found in _DIGITS.findall(name)}
    return next((each for each in near if each.number and each.number in numbers), None)


# -- on the trail --------------------------------------------------------------------------------------------------


async def keep_decisions(
    trail: Trail, decisions: Sequence[DecisionRecord], paths: Iterable[str] = (), *, by: Principal
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


def node_id(by: Principal, decision: DecisionRecord) -> str:
    """The id of the node of a decision; it stays while the text is edited."""
    return keyed_id(by.owner_id, f"decision:{decision.source}")


def _draft(decision: DecisionRecord, id: str, superseded: Mapping[str, str]) -> Draft:
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
        "trust": TrustLevel.RECENT,
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
    """The decision records and changelogs in the files of one folder. Calls `on_change` after it wrote or removed
    decisions."""

    def __init__(
        self,
        trail: Trail,
        root: Path,
        owner: Principal,
        code: CodeGraph,
        on_change: Callable[[], None],
    ) -> None:
        self._trail, self._root, self._owner = trail, root, owner
        self._code, self._on_change = code, on_change
        self._state = ""
        self._blobs_of: dict[_IsWanted, dict[str, str]] = {is_adr: {}, is_changelog: {}}
        """In that state of the files, the blobs of the decision records and of the changelogs by path."""
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

    async def recheck(self, find: Callable[[], Awaitable[list[ScoredNode]]]) -> list[ScoredNode]:
        """The result of `find` once its claims about files are true. A decision that is out of date is synced first and
        dropped if that does not help; any other node loses a claim that does not match its file."""
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
        return [_without_place(each) if each.node.id in lost else each for each in kept]

    async def decisions(self) -> list[DecisionRecord]:
        """The decisions that the records of the repository state."""
        return await asyncio.to_thread(self._read_decisions, sorted(await self._blobs(is_adr)))

    async def changes(self) -> list[ChangeNote]:
        """The notes of all changelogs, in the order of their files; the same list until one of them changes."""
        blobs = await self._blobs(is_changelog)
        if self._changes[0] != blobs:
            self._notes = await asyncio.to_thread(self._read_notes, blobs)
            self._changes = blobs, [note for path in sorted(blobs) for note in self._notes[path][1]]
        return self._changes[1]

    async def _blobs(self, is_wanted: _IsWanted) -> dict[str, str]:
        state = await self._code.state(self._blobs_of[is_wanted])
        if state != self._state:
            files = await self._code.files()
            for each in self._blobs_of:
                self._blobs_of[each] = {file.path: file.blob for file in files if each(file.path)}
            self._state = state
        return self._blobs_of[is_wanted]

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
        paths = {str(node.path) for node in claims}
        contents = {path: await asyncio.to_thread(read_content, self._code.tree.root, path) for path in paths}
        blobs = {path: content.blob if content is not None else "" for path, content in contents.items()}
        return [
            node
            for node in claims
            if node.content_hash != blobs[str(node.path)] or not await self._is_ours(node, is_marked)
        ]

    async def _is_ours(self, node: Node, is_marked: Callable[[Breadcrumb], bool]) -> bool:
        """Whether a program of this user wrote a node from a file. A node that the owner does not see is not theirs."""
        try:
            return is_marked(await self._trail.records.get(node.id, by=self._owner))
        except NotFound:
            return False

    def _read_notes(self, blobs: Mapping[str, str]) -> dict[str, tuple[str, list[ChangeNote]]]:
        held = {path: self._notes[path] for path, blob in blobs.items() if self._notes.get(path, ("",))[0] == blob}
        for path in blobs.keys() - held.keys():
            content = read_content(str(self._root), path)
            held[path] = blobs[path], read_changelog(path, content.body) if content is not None else []
        return held

    def _read_decisions(self, paths: Sequence[str]) -> list[DecisionRecord]:
        contents = ((path, read_content(str(self._root), path)) for path in paths)
        found = (read_adr(path, content.body) for path, content in contents if content is not None)
        return [decision for decision in found if decision is not None]


def _is_synced(node: Node) -> bool:
    return node.source == REPOSITORY


def _without_place(found: ScoredNode) -> ScoredNode:
    node = msgspec.structs.replace(found.node, path=None, line_start=None, line_end=None, content_hash=None)
    return msgspec.structs.replace(found, node=node)
