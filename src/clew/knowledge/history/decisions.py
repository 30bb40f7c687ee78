"""Decisions of a repository: read from its decision records (Nygard's form, MADR, run-in headings) and changelogs, and
kept on the trail as nodes with edges to the code that they name and to the decisions that they supersede."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from typing import Any, Literal

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict, CycleRefused
from clew.fences import clean
from clew.knowledge.code.file_content import blob_id
from clew.knowledge.evidence.provenance import with_marks
from clew.knowledge.history.changelog import (
    ChangeKind,
    ChangeNote,
    find_date,
    is_changelog,
    is_release_notes,
    read_changelog,
    read_heading,
)
from clew.knowledge.history.links import link_code
from clew.knowledge.upsert import keyed_id, put_as
from clew.secrecy import mask_document
from clew.trail.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.bulk import drop_records, each_record
from clew.trail.kinds import NodeDomain, NodeType, Trust, Verification
from clew.trail.node import domain_tag, type_tag
from clew.trail.nodes import SCHEMA, NodeFields, NodeGraph, build_node
from clew.trail.selector import ContextMatch, Selector
from clew.trail.store import Trail

REPOSITORY = "repository"
"""The source of decisions that were read from files of the repository."""
MAX_SIZE = 500_000
MAX_PART = 8_000
MOST_CHANGES = 2_000
"""Changes of changelogs that are kept on the trail, in the order of their files."""

DecisionKind = Literal["adr", "changelog"]

_FOLDER = re.compile(r"(?:^|/)(?:adrs?|decisions?|decision[-_]records?|architecture[-_]decisions?)/", re.IGNORECASE)
_OTHER = re.compile(r"(?:^|[-_/])(?:readme|index|template|adr-template|toc)\.md$|/template", re.IGNORECASE)
_RUN_IN = re.compile(r"\*\*([A-Z][A-Za-z ]{2,40}?)[.:]\*\*[.:]?\s*(.*)")
_FIELD = re.compile(
    r"(?:[*-]\s+)?\**(status|date|deciders|supersedes|superseded[ -]by|amends)\**\s*:\**\s*(.*)", re.IGNORECASE
)
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
_PATH = re.compile(r"(?<![\w/.-])((?:[\w-]+/){1,12}[\w.-]+\.[A-Za-z]\w{0,5})(?![\w/])")
_BATCH = 100
"""Nodes that one transaction writes."""
_DIGITS = re.compile(r"\d+")
_DECIDED: frozenset[ChangeKind] = frozenset(("breaking", "deprecated", "removed", "changed"))


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and its place: the path `source`, a line from 1, and the git blob id `hash` of the file. `supersedes`
    holds numbers, titles or files as they were written."""

    kind: DecisionKind
    title: str
    source: str
    line: int
    hash: str
    number: str = ""
    status: str = ""
    day: date | None = None
    version: str = ""
    context: str = ""
    decision: str = ""
    consequences: str = ""
    supersedes: tuple[str, ...] = ()
    superseded_by: str = ""

    @property
    def cited(self) -> str:
        return f"{self.source}:{self.line}"

    @property
    def key(self) -> str:
        """A name that stays while the text is edited."""
        place = self.source if self.kind == "adr" else f"{self.source}#{self.version}#{self.title}"
        return f"decision:{place}"

    @property
    def text(self) -> str:
        """All of it, without a title that only repeats how the decision begins."""
        is_repeated = bool(self.title) and self.decision.startswith(self.title.removesuffix("…"))
        parts = ("" if is_repeated else self.title, self.context, self.decision, self.consequences)
        return "\n\n".join(part for part in parts if part)

    def mentions(self, name: str) -> bool:
        """Whether the text has a name as a whole word."""
        return bool(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w-])", self.text))


def is_adr(path: str) -> bool:
    """Whether a path looks like that of a decision record."""
    return path.endswith(".md") and _FOLDER.search(path) is not None and _OTHER.search(path) is None


def read_adr(path: str, content: bytes) -> Decision | None:
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


def _build(path: str, content: bytes, title: str, line: int, parts: Mapping[str, str]) -> Decision:
    numbered = _NUMBER.match(title)
    in_name = _FILE_NUMBER.match(path.rpartition("/")[2])
    fields = {
        found[1].lower().replace("-", " "): found[2].strip() for found in map(_FIELD.match, _head(parts)) if found
    }
    said = _LINK.sub(r"\1 \2", f"{fields.get('status', '')}\n{parts.get('status', '')}")
    replaced = fields.get("superseded by") or next((found[1] for found in _REPLACED.finditer(said)), "")
    replaces = [fields["supersedes"]] if "supersedes" in fields else [found[1] for found in _REPLACES.finditer(said)]
    status = re.match(r"\W*([a-z]+)", said.strip().lower())
    return Decision(
        kind="adr",
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


def _head(parts: Mapping[str, str]) -> list[str]:
    return [line.strip() for line in parts.get("fields", "").split("\n")[:60]]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """How many decisions were written, superseded and removed, and edges drawn."""

    written: int
    edges: int
    superseded: int
    removed: int = 0


def read_decisions(files: Iterable[tuple[str, bytes]]) -> list[Decision]:
    """The decisions in the decision records and changelogs among these files, in order."""
    found: list[Decision] = []
    changes: list[Decision] = []
    for path, content in files:
        if is_adr(path):
            decision = read_adr(path, content)
            found += [decision] if decision is not None else []
        elif is_changelog(path):
            changes += map(_of_change, filter(_is_decided, read_changelog(path, content)))
    return [*found, *changes[:MOST_CHANGES]]


def _is_decided(note: ChangeNote) -> bool:
    """Whether a list item of a changelog breaks, removes, deprecates or changes something."""
    return note.is_item and note.kind in _DECIDED


def _of_change(note: ChangeNote) -> Decision:
    return Decision(
        kind="changelog",
        title=note.text.split("\n", 1)[0][:200],
        source=note.path,
        line=note.line,
        hash=note.hash,
        status=note.kind,
        day=note.day,
        version=note.version,
        decision=note.text,
    )


def is_told(path: str) -> bool:
    """Whether a file is history and no document: a decision record or a changelog. Release notes of one version are
    documents too."""
    return is_adr(path) or (is_changelog(path) and not is_release_notes(path))


async def keep_decisions(
    trail: Trail, decisions: Sequence[Decision], paths: Iterable[str] = (), *, by: Principal, drops: bool = True
) -> Kept:
    """Make the trail hold these decisions as nodes: each once, written anew when its text changed, or when no program
    of this user wrote the present node. `paths` are the files of the repository; a decision gets an edge to each that
    it names. Decisions that are gone from the files are removed if `drops`."""
    known, present = frozenset(paths), {each.id: each for each in await _kept(trail, by)}
    drafts = _drafts(decisions, by)
    written = await _create(trail, [draft for id, draft in drafts.items() if id not in present], by)
    for id, draft in drafts.items():
        if id not in written and (id not in present or _change(draft, present[id])) and await _put(trail, draft, by):
            written.add(id)
    edges = 0
    for decision in (each for each in decisions if node_id(by, each) in written):
        named = [path for path in dict.fromkeys(_PATH.findall(decision.text)) if path in known]
        edges += len(await link_code(trail, node_id(by, decision), named, by=by)) if named else 0
    others = [each.id for each in present.values() if each.id not in drafts and each.context.get("path")]
    removed = await drop_records(trail, others, by=by) if drops else 0
    superseded = await _supersede(trail, decisions, by)
    return Kept(written=len(written), edges=edges, superseded=superseded, removed=removed)


def node_id(by: Principal, decision: Decision) -> str:
    """The id of the node of a decision."""
    return keyed_id(by.owner_id, decision.key)


async def _kept(trail: Trail, by: Principal) -> list[Breadcrumb]:
    """The decisions on the trail that were read from files."""
    wanted = Selector(
        schema_name=SCHEMA,
        all_tags=(domain_tag(NodeDomain.HISTORY), type_tag(NodeType.DECISION)),
        context_match=(ContextMatch(path="source", value=REPOSITORY),),
    )
    return [each async for each in each_record(trail, wanted, by=by)]


def _drafts(decisions: Iterable[Decision], by: Principal) -> dict[str, Draft]:
    """The nodes of decisions by id; of several with one id, the last."""
    made = with_marks([_draft(decision, by) for decision in decisions])
    return {str(draft.id): draft for draft in made}


def _draft(decision: Decision, by: Principal) -> Draft:
    fields: NodeFields = {
        "category": "decision",
        "source": REPOSITORY,
        "content_hash": decision.hash,
        "trust": Trust.RECENT,
        "verification": Verification.CODE,
        "metadata": _metadata(decision),
        "path": decision.source,
        "line_start": decision.line,
        **({"timestamp": datetime.combine(decision.day, time(), UTC)} if decision.day else {}),
        "id": node_id(by, decision),
    }
    return build_node(decision.title[:500], NodeDomain.HISTORY, NodeType.DECISION, decision.text, fields)


async def _create(trail: Trail, drafts: Sequence[Draft], by: Principal) -> set[str]:
    """Write new nodes in batches, and return the ids of those written. A batch with a node that somebody else wrote
    meanwhile is left out, to be written one by one."""
    written: set[str] = set()
    for first in range(0, len(drafts), _BATCH):
        some = drafts[first : first + _BATCH]
        with suppress(AlreadyExists, Conflict):
            written.update(each.id for each in await trail.records.create_many(some, by=by))
    return written


async def _put(trail: Trail, draft: Draft, by: Principal) -> bool:
    """Write or change one node; whether there was anything to write."""
    before: list[Breadcrumb] = []

    def change(present: Breadcrumb) -> Change | None:
        before[:] = [present]
        return _change(draft, present)

    after = await put_as(trail, draft, change, by=by)
    return not before or before[0].version != after.version


def _change(draft: Draft, present: Breadcrumb) -> Change | None:
    """The change that a node needs, if any."""
    later = {"superseded_by": present.context["superseded_by"]} if "superseded_by" in present.context else {}
    wanted = {**draft.context, **later}
    is_same = present.context == wanted and present.title == draft.title
    return None if is_same else Change(title=draft.title, context=wanted)


def _metadata(decision: Decision) -> dict[str, Any]:
    known = {
        "kind": decision.kind,
        "status": decision.status,
        "number": decision.number,
        "version": decision.version,
        "day": decision.day.isoformat() if decision.day else "",
    }
    return {name: value for name, value in known.items() if value}


async def _supersede(trail: Trail, decisions: Sequence[Decision], by: Principal) -> int:
    """Mark records as superseded: those that later ones name, and those that name a later one."""
    graph, records = NodeGraph(trail, by), [each for each in decisions if each.kind == "adr"]
    pairs = [(old, new) for new in records for name in new.supersedes if (old := _named(name, records, new))]
    pairs += [(old, new) for old in records if (new := _named(old.superseded_by, records, old))]
    done = 0
    for earlier, later in dict.fromkeys((node_id(by, old), node_id(by, new)) for old, new in pairs):
        try:
            await graph.supersede(earlier, later)
        except CycleRefused:
            continue  # two records that each claim to replace the other
        done += 1
    return done


def _named(name: str, records: Sequence[Decision], by: Decision) -> Decision | None:
    """The record of the same folder that a text names by file, number or title."""
    folder = by.source.rpartition("/")[0]
    near = [each for each in records if each is not by and each.source.rpartition("/")[0] == folder]
    lowered = name.lower()
    for each in near:
        if each.source.rpartition("/")[2].lower() in lowered or (len(each.title) > 3 and each.title.lower() in lowered):
            return each
    numbers = {found.lstrip("0") for found in _DIGITS.findall(name)}
    return next((each for each in near if each.number and each.number in numbers), None)
