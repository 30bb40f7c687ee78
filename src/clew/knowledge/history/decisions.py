"""Decisions of a repository, from its files and commits, and kept on the trail as nodes with edges to the code that
they name and to the decisions that they supersede."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict, CycleRefused
from clew.knowledge.evidence.signatures import with_marks
from clew.knowledge.history.adr import is_adr, read_adr
from clew.knowledge.history.changelogs import changelog_decisions, is_changelog, read_changelog
from clew.knowledge.history.decision import Decision
from clew.knowledge.history.keyed import keyed_id, put_as
from clew.knowledge.history.links import link_code
from clew.trail.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.bulk import drop_records, each_record
from clew.trail.kinds import NodeDomain, NodeType, Trust, Verification
from clew.trail.node import domain_tag, type_tag
from clew.trail.nodes import SCHEMA, NodeFields, NodeGraph, build_node
from clew.trail.selector import ContextMatch, Selector
from clew.trail.store import Trail

REPOSITORY = "repository"
"""The source of decisions that files of the repository tell of."""
_PATH = re.compile(r"(?<![\w/.-])((?:[\w-]+/){1,12}[\w.-]+\.[A-Za-z]\w{0,5})(?![\w/])")
_BATCH = 100
"""So many are written in one transaction."""
_DIGITS = re.compile(r"\d+")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What became of decisions on the trail."""

    written: int
    edges: int
    superseded: int
    removed: int = 0


def read_decisions(files: Iterable[tuple[str, bytes]]) -> list[Decision]:
    """The decisions in decision records and changelogs among these files, in order; other files are passed over."""
    found: list[Decision] = []
    for path, content in files:
        if is_adr(path):
            decision = read_adr(path, content)
            found += [decision] if decision is not None else []
        elif is_changelog(path):
            found += changelog_decisions(read_changelog(path, content))
    return found


def is_told(path: str) -> bool:
    """Whether a file of this name may tell of decisions."""
    return is_adr(path) or is_changelog(path)


async def keep_decisions(
    trail: Trail, decisions: Sequence[Decision], paths: Iterable[str] = (), *, by: Principal, drops: bool = True
) -> Kept:
    """Write decisions as nodes that are found by meaning: each once, anew where its text has changed, or where no
    program of this user wrote what is there. `paths` are the files of the repository; those that a decision names get
    an edge. Decisions that no file tells of any more are removed, unless there may be more than these."""
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
    """What is on the trail of decisions that files of the repository told of."""
    wanted = Selector(
        schema_name=SCHEMA,
        all_tags=(domain_tag(NodeDomain.HISTORY), type_tag(NodeType.DECISION)),
        context_match=(ContextMatch(path="source", value=REPOSITORY),),
    )
    return [each async for each in each_record(trail, wanted, by=by)]


def _drafts(decisions: Iterable[Decision], by: Principal) -> dict[str, Draft]:
    """The nodes of decisions by their ids; of those that have one id, the last."""
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
        **({"path": decision.source, "line_start": decision.line} if decision.line else {}),
        **({"timestamp": datetime.combine(decision.day, time(), UTC)} if decision.day else {}),
        "id": node_id(by, decision),
    }
    return build_node(decision.title[:500], NodeDomain.HISTORY, NodeType.DECISION, decision.text, fields)


async def _create(trail: Trail, drafts: Sequence[Draft], by: Principal) -> set[str]:
    """Write new nodes, many at once: the ids of those that are written. Where somebody else wrote one of them at this
    moment, all that it came with is left to be written one by one."""
    written: set[str] = set()
    for first in range(0, len(drafts), _BATCH):
        some = drafts[first : first + _BATCH]
        with suppress(AlreadyExists, Conflict):
            written.update(each.id for each in await trail.records.create_many(some, by=by))
    return written


async def _put(trail: Trail, draft: Draft, by: Principal) -> bool:
    """Write one node, or change what is there; whether there was anything to write."""
    before: list[Breadcrumb] = []

    def change(present: Breadcrumb) -> Change | None:
        before[:] = [present]
        return _change(draft, present)

    after = await put_as(trail, draft, change, by=by)
    return not before or before[0].version != after.version


def _change(draft: Draft, present: Breadcrumb) -> Change | None:
    """What makes a node what it is to be; nothing where it is that already."""
    later = {"superseded_by": present.context["superseded_by"]} if "superseded_by" in present.context else {}
    wanted = {**draft.context, **later}
    is_same = present.context == wanted and present.title == draft.title
    return None if is_same else Change(title=draft.title, context=wanted)


def _metadata(decision: Decision) -> dict[str, Any]:
    told = {
        "kind": decision.kind,
        "status": decision.status,
        "number": decision.number,
        "version": decision.version,
        "day": decision.day.isoformat() if decision.day else "",
    }
    return {name: value for name, value in told.items() if value}


async def _supersede(trail: Trail, decisions: Sequence[Decision], by: Principal) -> int:
    """Let later records stand in the place of those that they name, and of those that name them."""
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
    """The record of the same folder that a text names, by file, number or title; None when it names none."""
    folder = by.source.rpartition("/")[0]
    near = [each for each in records if each is not by and each.source.rpartition("/")[0] == folder]
    lowered = name.lower()
    for each in near:
        if each.source.rpartition("/")[2].lower() in lowered or (len(each.title) > 3 and each.title.lower() in lowered):
            return each
    numbers = {found.lstrip("0") for found in _DIGITS.findall(name)}
    return next((each for each in near if each.number and each.number in numbers), None)
