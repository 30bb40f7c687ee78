"""The ledger: usage of every call, by agent, session, layer and model, and savings."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import SchemaViolation
from clew.llm.ledger import UsageLedger, UsageRecord, read_ledger, usage_draft, usage_record
from clew.llm.messages import Usage
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail

SCHEMA = "usage.v1"


def record(**given: object) -> UsageRecord:
    return UsageRecord(**{"agent_id": "guide", "model": "anthropic:a", "cost": 0.0, **given})  # type: ignore[arg-type]


@pytest.mark.req("SYL-117")
async def test_calls_are_summed_by_agent_session_layer_and_model(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    records = [
        record(session="s1", input_tokens=100, output_tokens=10, cached_tokens=40, cost=0.5, baseline_tokens=400),
        record(session="s1", layer="cache", model="", input_tokens=0, baseline_tokens=300, request_id="r2"),
        record(session="s2", agent_id="engineer", model="openai:b", input_tokens=50, output_tokens=40, cost=0.25),
        record(session="s2", agent_id="engineer", model="lab:c", input_tokens=7, cost=None, latency_ms=12.5),
    ]
    await trail.records.create_many([usage_draft(SCHEMA, each) for each in records], by=me)
    ledger = await read_ledger(trail, SCHEMA, by=me)
    total = ledger.total
    assert (total.calls, total.tokens, total.cached_tokens, total.cost, total.latency_ms) == (4, 207, 40, 0.75, 12.5)
    assert (total.hit_rate, total.saved_tokens, total.savings) == (0.25, 590, 590 / 700)
    assert {name: each.calls for name, each in ledger.agents.items()} == {"guide": 2, "engineer": 2}
    assert {name: each.calls for name, each in ledger.sessions.items()} == {"s1": 2, "s2": 2}
    assert {name: each.hits for name, each in ledger.layers.items()} == {"model": 0, "cache": 1}
    assert {name: each.cost for name, each in ledger.models.items()} == {
        "anthropic:a": 0.5,
        "openai:b": 0.25,
        "lab:c": None,
    }
    assert ledger.remarks == ("no price is known of lab:c: 1 calls are not in the cost",)
    of_session = await read_ledger(trail, SCHEMA, by=me, session="s2")
    assert (of_session.total.calls, of_session.total.savings) == (2, None)
    of_agent = await read_ledger(trail, SCHEMA, by=me, agent_id="guide", session="s1")
    assert of_agent.total.calls == 2


async def test_the_same_call_is_counted_once_however_often_it_is_written(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    draft = usage_draft(SCHEMA, usage_record(Usage(input_tokens=5, cost=0.1), agent_id="guide", request_id="r1"))
    for _ in range(3):
        await trail.records.create(draft, by=me)
    assert (await read_ledger(trail, SCHEMA, by=me)).total.calls == 1


async def test_more_records_than_a_page_holds_since_a_time_and_of_the_caller_only(
    trail: Trail, me: Principal, stranger: Principal, clock: ManualClock
) -> None:
    await trail.records.create_many([usage_draft(SCHEMA, record(input_tokens=1)) for _ in range(30)], by=me)
    await trail.records.create(usage_draft(SCHEMA, record(input_tokens=1)), by=stranger)
    clock.advance(seconds=60)
    since = clock.now()
    clock.advance(seconds=60)
    await trail.records.create_many([usage_draft(SCHEMA, record(input_tokens=2)) for _ in range(1_001)], by=me)
    assert (await read_ledger(trail, SCHEMA, by=me)).total.input_tokens == 2_032
    assert (await read_ledger(trail, SCHEMA, by=me, since=since)).total.calls == 1_001


async def test_records_of_another_shape_are_counted_and_said(trail: Trail, me: Principal) -> None:
    await trail.records.create(Draft(title="odd", schema_name=SCHEMA, context={"agent_id": 5}), by=me)
    ledger = await read_ledger(trail, SCHEMA, by=me)
    assert (ledger.total.calls, ledger.unreadable) == (0, 1)
    assert ledger.remarks == ("1 usage records could not be read",)
    assert UsageLedger().total.hit_rate is None
    await bootstrap(trail, me)
    with pytest.raises(SchemaViolation):
        await trail.records.create(Draft(title="odd", schema_name=SCHEMA, context={"agent_id": 5}), by=me)


async def test_usage_costs_no_vector(trail: Trail, me: Principal) -> None:
    draft = usage_draft(SCHEMA, record(session="s", run="r"))
    assert draft.embed == "never"
    assert set(draft.tags) == {"usage:model", "agent:guide", "session:s", "run:r"}
