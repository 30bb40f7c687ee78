"""Only a curator may write definitions that affect other breadcrumbs (schemas, TTL policies), by any kind of write."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.errors import AccessDenied
from clew.trail.model.event import Consumer
from clew.trail.store import Trail
from tests.conformance.records import claim_one, draft, list_all, make

EMITTER = Principal(owner_id="acme", agent_id="sensor", roles=frozenset({"emitter"}))
WORKER = Principal(owner_id="acme", agent_id="worker", roles=frozenset({"emitter", "subscriber"}))

DEFINITIONS: list[tuple[str, dict[str, Any]]] = [
    ("schema.def.v1", {"schema_name": "note.v1", "schema": {"required": ["never"]}}),
    ("ttl.policy.v1", {"schema_name": "note.v1", "seconds": 1}),
]
each_definition = pytest.mark.parametrize(("schema_name", "context"), DEFINITIONS, ids=lambda value: str(value)[:13])


@each_definition
async def test_an_emitter_writes_no_definition(
    trail: Trail, me: Principal, schema_name: str, context: dict[str, Any]
) -> None:
    ruling = draft("Rule", schema_name=schema_name, context=context)
    for batch in ([ruling], [draft("Harmless"), ruling]):
        with pytest.raises(AccessDenied, match="curator"):
            await trail.records.create_many(batch, by=EMITTER)
    assert await list_all(trail, me) == []
    assert (await make(trail, EMITTER, schema_name="note.v1")).ttl.kind == "never"


@each_definition
async def test_a_handler_without_the_role_brings_no_definition_as_its_output(
    trail: Trail, me: Principal, schema_name: str, context: dict[str, Any]
) -> None:
    await trail.deliveries.register(Consumer(name="c"), by=WORKER)
    await make(trail, me)
    held = await claim_one(trail, WORKER, "c")
    with pytest.raises(AccessDenied, match="curator"):
        await trail.deliveries.finish(held, [draft("Rule", schema_name=schema_name, context=context)], by=WORKER)
    assert len(await list_all(trail, me)) == 1
    await trail.deliveries.finish(held, [], by=WORKER)


@each_definition
async def test_a_curator_writes_a_definition(
    trail: Trail, me: Principal, schema_name: str, context: dict[str, Any]
) -> None:
    curator = msgspec.structs.replace(me, roles=frozenset({"curator"}))
    assert (await make(trail, curator, "Rule", schema_name=schema_name, context=context)).schema_name == schema_name
