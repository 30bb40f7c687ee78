"""Decisions of a repository, read from its decision records: Nygard's form, MADR, and run-in headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import NamedTuple

import msgspec

from clew.fences import clean
from clew.knowledge.code.file_content import FileContent, blob_id
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.history.changelog import ParsedFiles, find_date, read_heading
from clew.knowledge.history.entries import newest_first
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.knowledge.text import stems
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_document

DECISION_PREFIX = "decision:"
RELATED = 0.3
"""A record with this share of the words of a query is found by it."""
_PATH = lazy_pattern(r"(?<![\w/.-])((?:[\w-]+/){1,12}[\w.-]+\.[A-Za-z]\w{0,5})(?![\w/])")
MAX_SIZE = 500_000
MAX_PART = 8_000
_FOLDER = lazy_pattern(r"(?:^|/)(?:adrs?|decisions?|decision[-_]records?|architecture[-_]decisions?)/", re.IGNORECASE)
_OTHER = lazy_pattern(r"(?:^|[-_/])(?:readme|index|template|adr-template|toc)\.md$|/template", re.IGNORECASE)
_RUN_IN = lazy_pattern(r"\*\*([A-Z][A-Za-z ]{2,40}?)[.:]\*\*[.:]?\s*(.*)")
_FIELD = lazy_pattern(r"\s*(?:[*-]\s+)?\**(status|date|supersedes|superseded[ -]by)\**\s*:\**\s*(.*)", re.IGNORECASE)
_NUMBER = lazy_pattern(r"(?:ADR[- ]?)?0*(\d{1,5})\s*[.:—–-]?\s+", re.IGNORECASE)
_FILE_NUMBER = lazy_pattern(r"(?:adr[-_])?0*(\d{1,5})[-_]", re.IGNORECASE)
_REPLACES = lazy_pattern(r"(?<!\w)(?:supersedes|replaces)\b:?\s*([^\n;]+)", re.IGNORECASE)
_REPLACED = lazy_pattern(r"(?:superseded|replaced)\s+by\b:?\s*([^\n;]+)", re.IGNORECASE)
_LINK = lazy_pattern(r"\[([^\]]{1,200})\]\(([^)\s]{1,300})[^)]{0,100}\)")
_FENCE = lazy_pattern(r"\s*(```|~~~)")

_SECTIONS = {
    "context": ("context", "problem", "background", "issue", "motivation", "context and problem statement"),
    "decision": ("decision", "decision outcome", "choice", "solution", "resolution", "decisions"),
    "consequences": ("consequences", "cost", "costs", "implications", "positive consequences", "negative consequences"),
    "status": ("status",),
}
_PARTS = {alias: name for name, aliases in _SECTIONS.items() for alias in aliases}
_DIGITS = lazy_pattern(r"\d+")


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
    """Line number, name of the part (or `title`) and text of each line. Below a heading, bold words that name no part
    belong to the text."""
    part, is_code, is_front = "fields", False, bool(lines) and lines[0].strip() == "---"
    is_headed = False
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
            part, is_headed = _PARTS.get(heading.text.strip(" .:").lower(), "other"), True
        elif (run_in := _RUN_IN.match(line) if not is_code else None) and (
            not is_headed or run_in[1].strip().lower() in _PARTS
        ):
            part, is_headed = _PARTS.get(run_in[1].strip().lower(), "other"), False
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
    """Pairs of a record and the record that supersedes it. Either of the two may name the other. If records claim to
    supersede each other, the first claim counts."""
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


# -- as nodes ------------------------------------------------------------------------------------------------------


class _KnownDecision(NamedTuple):
    record: DecisionRecord
    words: frozenset[str]
    written: datetime
    """The time when the file of a record was written."""


class Decisions:
    """The decision records of one folder, as its files state them now. They are nodes of the history, but never stored:
    their ids begin with DECISION_PREFIX."""

    def __init__(self, code: CodeGraph) -> None:
        self._code = code
        self._files = ParsedFiles(code, is_adr, _read)

    async def records(self) -> list[DecisionRecord]:
        """All records, in the order of their paths."""
        return [each.record for each in await self._files.read()]

    async def nodes(self) -> list[Node]:
        """The nodes of all records, newest first."""
        return [node for node, _ in await self._nodes()]

    async def search(self, query: str, limit: int) -> list[ScoredNode]:
        """The records that share most words with a query, best first; of equal ones the newest."""
        wanted = stems(query)
        scored = [
            ScoredNode(node=node, similarity=len(wanted & known.words) / len(wanted))
            for node, known in (await self._nodes() if wanted else ())
        ]
        found = [each for each in scored if each.similarity >= RELATED]
        return sorted(found, key=lambda each: -each.similarity)[:limit]

    async def about(self, path: str) -> list[Node]:
        """The records that name a file, newest first."""
        return [node for node, known in await self._nodes() if known.record.mentions(path)]

    async def files_named_in(self, decision: Node) -> list[Node]:
        """The files of the folder that a record names."""
        known = {file.path for file in await self._code.files()}
        return [
            await self._code.symbol(path) for path in dict.fromkeys(_PATH.findall(decision.content)) if path in known
        ]

    async def _nodes(self) -> list[tuple[Node, _KnownDecision]]:
        known = {each.record.source: each for each in await self._files.read()}
        later = {old.source: new for old, new in find_superseded([each.record for each in known.values()])}
        nodes = newest_first(_to_node(each, later.get(path)) for path, each in known.items())
        return [(node, known[str(node.path)]) for node in nodes]


def _read(content: FileContent) -> list[_KnownDecision]:
    record = read_adr(content.path, content.body)
    written = datetime.fromtimestamp(content.status.mtime_ns // 1_000_000_000, UTC)
    return [_KnownDecision(record, stems(record.text), written)] if record is not None else []


def _to_node(known: _KnownDecision, later: DecisionRecord | None) -> Node:
    record = known.record
    said = {"status": record.status, "number": record.number, "day": record.day.isoformat() if record.day else ""}
    return Node(
        id=f"{DECISION_PREFIX}{record.source}",
        name=record.title[:500],
        domain=NodeDomain.HISTORY,
        node_type=NodeType.DECISION,
        content=record.text,
        path=record.source,
        line_start=record.line,
        content_hash=record.hash,
        timestamp=datetime.combine(record.day, time(), UTC) if record.day else None,
        category="decision",
        source="repository",
        metadata={"kind": "adr", **{name: value for name, value in said.items() if value}},
        verified=True,
        verification=Verification.CODE,
        trust=TrustLevel.RECENT,
        created_at=known.written,
        superseded_by=f"{DECISION_PREFIX}{later.source}" if later is not None else None,
    )
