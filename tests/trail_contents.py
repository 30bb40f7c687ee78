"""A trail with something in every table, and everything that its callers can see of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from clew.access import Principal
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Change, Draft, Ttl
from clew.trail.model.edge import Edge
from clew.trail.model.event import ClaimLimits, Consumer
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

ANN = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"hr"}))
EVE = Principal(owner_id="other", agent_id="eve")
OWNERS = (ANN, EVE)
WORK = Selector(schema_name="errand.v1")
KEY = "only once"
NEEDS_NAME = {"type": "object", "required": ["name"]}


async def fill(trail: Trail, extra: int = 0) -> None:
    """Write records of two owners with versions, scopes, an end, edges, a definition, secrets, keys; consumers with
    events that wait, are claimed, were retried and given up; `extra` more records."""
    for by in OWNERS:
        await _fill_records(trail, by)
        await _fill_queues(trail, by)
        await trail.secrets.put("github", f"token of {by.owner_id}", by=by)
    for start in range(0, extra, 500):
        drafts = [
            Draft(title=f"Note {n}", context={"n": n}, tags=["many"]) for n in range(start, min(extra, start + 500))
        ]
        await trail.records.create_many(drafts, by=EVE)


async def _fill_records(trail: Trail, by: Principal) -> None:
    create = trail.records.create
    context = {"schema_name": "tool.v1", "json_schema": NEEDS_NAME}
    await create(Draft(title="About tools", schema_name="schema.def.v1", context=context), by=by)
    first = await create(Draft(title="Grüße aus Zürich ✓", context={"text": "sorting letters"}, tags=["a", "b"]), by=by)
    for n in (2, 3):
        await trail.records.update(first.id, Change(context={"text": f"sorting {n}"}), expect=n - 1, by=by)
    second = await create(Draft(title="Second", context={"request_id": "r-1"}, idempotency_key=KEY), by=by)
    await create(Draft(title="Private", context={"text": "salaries"}, scopes=["hr"]), by=ANN)
    await create(Draft(title="Counted", context={}, ttl=Ttl(kind="usage", max_reads=3)), by=by)
    gone = await create(Draft(title="Gone", context={"nul": "a\0b"}, tags=["a"]), by=by)
    await trail.records.delete(gone.id, by=by)
    await trail.edges.add([Edge(source=first.id, target=second.id, type="references", weight=0.25)], by=by)


async def _fill_queues(trail: Trail, by: Principal) -> None:
    """Three sessions: the first event of one is claimed, that of another is a dead letter, the third waits."""
    for session in ("s1", "s2", "s3"):
        for n in (1, 2):
            draft = Draft(title=f"{session} {n}", schema_name="errand.v1", context={}, tags=[f"session:{session}"])
            await trail.records.create(draft, by=by)
    deliveries = trail.deliveries
    consumer = Consumer(name="errands", selector=WORK, start="beginning", agent_id=by.agent_id)
    await deliveries.register(consumer, by=by)
    claims = {each.event.tags[0]: each for each in await deliveries.claim("errands", by=by, worker="w\0", limit=2)}
    await deliveries.fail(claims["session:s2"], "no \0 luck \\0", by=by, retry=False)
    await deliveries.register(
        Consumer(name="pool", selector=WORK, start="beginning", limits=ClaimLimits(workers=2, each=1)), by=by
    )
    pooled = await deliveries.claim("pool", by=by, worker="w", limit=1, lease=timedelta(hours=5))
    assert len(pooled) == 1


async def read_all(trail: Trail) -> dict[str, Any]:
    """Everything that the owners see, except leases, which a move changes on purpose."""
    return {by.owner_id: await _read_of(trail, by) for by in OWNERS} | {
        "identity": await trail.upkeep.identity(),
        "head": await trail.log.head(),
    }


async def _read_of(trail: Trail, by: Principal) -> dict[str, Any]:
    records = [each async for each in each_record(trail, Selector(), by=by)]
    hits = (await trail.index.search(SearchRequest(text="sorting letters in Zürich", limit=5), by=by)).hits
    letters = await trail.dead_letters.list(by=by)
    return {
        "records": [await trail.records.get(each.id, by=by, vector=True) for each in records],
        "history": [await trail.records.history(each.id, by=by) for each in records],
        "events": (await trail.log.read(0, by=by, limit=5_000))[0],
        "edges": [await trail.edges.of(each.id, by=by, direction="outgoing") for each in records[:10]],
        "consumers": [
            (each.id, each.consumer, each.cursor, each.seen_at, each.pending + each.claimed, each.dead)
            for each in await trail.deliveries.consumers(by=by)
        ],
        "dead": [(each.id, each.reason, each.attempts, each.event.seq) for each in letters],
        "secrets": {name: await trail.secrets.reveal(name, by=by) for name in await trail.secrets.names(by=by)},
        "hits": [each.breadcrumb.id for each in hits],
        "stats": await trail.upkeep.stats(by=by),
    }
