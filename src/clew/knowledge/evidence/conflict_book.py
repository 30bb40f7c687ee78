"""The conflicts that were noticed, on the trail: each once, listed until somebody has settled it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import AlreadyExists, NotFound
from clew.knowledge.evidence.conflicts import Conflict
from clew.trail.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.kinds import ConflictKind
from clew.trail.selector import Selector
from clew.trail.store import Trail

SCHEMA = "conflict.v1"
OPEN, SETTLED = "conflict:open", "conflict:settled"
_NAMESPACE = UUID("0b9a4f1c-6f0e-5f0a-8a51-7e0d3c5b9d27")
_MAX_TITLE = 200


async def record_conflicts(trail: Trail, found: Sequence[Conflict], *, by: Principal) -> list[Conflict]:
    """Write conflicts down and return them as they stand on the trail. One that is known stays as it is: what was
    settled is not opened again."""
    return [await _record(trail, each, by) for each in found]


async def unresolved(trail: Trail, *, by: Principal, limit: int = 50) -> list[Conflict]:
    """Conflicts that nobody has settled, newest first."""
    page = await trail.records.list(Selector(schema_name=SCHEMA, all_tags=(OPEN,)), by=by, limit=limit)
    return [_to_conflict(each) for each in page.items]


async def resolve(trail: Trail, id: str, resolution: str, *, by: Principal, clock: Clock) -> Conflict:
    """Settle a conflict. Raises NotFound when there is none of this id, Conflict when another settles it meanwhile."""
    found = await trail.records.get(id, by=by)
    if found.schema_name != SCHEMA:
        raise NotFound("conflict", id)
    settled = {"resolution": resolution, "resolved": True, "resolved_at": clock.now().isoformat()}
    change = Change(context={**found.context, **settled}, tags=(*(set(found.tags) - {OPEN}), SETTLED))
    return _to_conflict(await trail.records.update(id, change, expect=found.version, by=by))


async def _record(trail: Trail, conflict: Conflict, by: Principal) -> Conflict:
    id = _id_of(conflict, by)
    draft = Draft(
        id=id,
        title=f"{conflict.kind.label.replace('_', ' ')}: {conflict.subject}"[:_MAX_TITLE],
        schema_name=SCHEMA,
        tags=(OPEN,),
        context={
            "kind": int(conflict.kind),
            "subject": conflict.subject,
            "node_a": conflict.node_a,
            "node_b": conflict.node_b,
            "description": conflict.description,
            "resolution": conflict.resolution,
            "resolved": False,
        },
        embed="never",
    )
    try:
        return _to_conflict(await trail.records.create(draft, by=by))
    except AlreadyExists:
        return _to_conflict(await trail.records.get(id, by=by))


def _id_of(conflict: Conflict, by: Principal) -> str:
    """One for all times that the same two nodes disagree on the same subject."""
    ends = "\n".join(sorted((conflict.node_a, conflict.node_b)))
    return str(uuid5(_NAMESPACE, f"{by.owner_id}\n{int(conflict.kind)}\n{ends}\n{conflict.subject.casefold()}"))


def _to_conflict(found: Breadcrumb) -> Conflict:
    kept = msgspec.convert({**found.context, "id": found.id}, Conflict)
    return msgspec.structs.replace(kept, kind=ConflictKind(kept.kind), detected_at=found.created_at)
