"""Breadcrumbs that govern others: `schema.def.v1` (JSON Schema, hints, embedding) and `ttl.policy.v1`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput, NotFound, SchemaViolation
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Change, Ttl
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import draft, lasting, list_titles, make, short, succeeds

NEEDS_NAME = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}


async def define(trail: Trail, by: Principal, schema_name: str = "tool.v1", /, **context: Any) -> Breadcrumb:
    context = {"schema_name": schema_name, **context}
    return await make(trail, by, f"About {schema_name}", schema_name="schema.def.v1", context=context)


async def policy(trail: Trail, by: Principal, **context: Any) -> Breadcrumb:
    return await make(trail, by, "Policy", schema_name="ttl.policy.v1", context=context)


async def shown(trail: Trail, by: Principal, id: str) -> dict[str, Any]:
    return (await trail.records.read(id, by=by)).context


# -- JSON Schema ------------------------------------------------------------------------------------------


async def test_a_context_that_breaks_its_schema_is_refused_with_the_place(trail: Trail, me: Principal) -> None:
    await define(trail, me, json_schema=NEEDS_NAME)
    with pytest.raises(SchemaViolation) as caught:
        await make(trail, me, schema_name="tool.v1", context={"name": 7})
    assert (caught.value.schema_name, caught.value.field) == ("tool.v1", "context/name")
    with pytest.raises(SchemaViolation):
        await make(trail, me, schema_name="tool.v1")
    made = await make(trail, me, "Fine", schema_name="tool.v1", context={"name": "grep"})
    with pytest.raises(SchemaViolation):
        await trail.records.update(made.id, Change(context={}), expect=1, by=me)
    assert (await trail.records.get(made.id, by=me)).version == 1
    assert await list_titles(trail, me, schema_name="tool.v1") == ["Fine"]


async def test_changing_to_a_schema_is_checked_against_it(trail: Trail, me: Principal) -> None:
    await define(trail, me, json_schema=NEEDS_NAME)
    made = await make(trail, me)
    with pytest.raises(SchemaViolation):
        await trail.records.update(made.id, Change(schema_name="tool.v1"), expect=1, by=me)
    change = Change(schema_name="tool.v1", context={"name": "x"})
    assert (await trail.records.update(made.id, change, expect=1, by=me)).version == 2


async def test_a_batch_with_one_violation_writes_nothing(trail: Trail, me: Principal) -> None:
    await define(trail, me, json_schema=NEEDS_NAME)
    with pytest.raises(InvalidInput) as caught:
        await trail.records.create_many([draft("A"), draft("B", schema_name="tool.v1")], by=me)
    assert caught.value.field.startswith("[1].context")
    assert await list_titles(trail, me) == ["About tool.v1"]


async def test_other_schemas_and_other_owners_are_not_concerned(
    trail: Trail, me: Principal, stranger: Principal
) -> None:
    await define(trail, me, json_schema=NEEDS_NAME)
    assert await make(trail, me, schema_name="tool.v2")
    assert await make(trail, me)
    assert await make(trail, stranger, schema_name="tool.v1")


async def test_a_definition_with_scopes_governs_nobody(trail: Trail) -> None:
    """Otherwise rules would apply to callers who cannot read them."""
    wide = Principal(owner_id="acme", scopes=frozenset({"hr"}))
    context = {"schema_name": "tool.v1", "json_schema": NEEDS_NAME}
    made = await make(trail, wide, "Scoped", schema_name="schema.def.v1", context=context, scopes=["hr"])
    assert await make(trail, wide, schema_name="tool.v1")
    await trail.records.update(made.id, Change(scopes=[]), expect=1, by=wide)
    with pytest.raises(SchemaViolation):
        await make(trail, wide, schema_name="tool.v1")


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"schema_name": 7},
        {"schema_name": "x.v1", "json_schema": {"type": "no such type"}},
        {"schema_name": "x.v1", "json_schema": "text"},
        {"schema_name": "x.v1", "json_schema": {"$ref": "https://example.org/schema.json"}},
        {"schema_name": "x.v1", "llm_hints": {"unknown": 1}},
        {"schema_name": "x.v1", "llm_hints": {"template": "{{#each"}},
        {"schema_name": "x.v1", "llm_hints": []},
        {"schema_name": "x.v1", "embed": "sometimes"},
    ],
    ids=short,
)
async def test_a_definition_that_could_not_work_is_refused_when_it_is_written(
    trail: Trail, me: Principal, context: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        await make(trail, me, schema_name="schema.def.v1", context=context)
    fine = await define(trail, me, "x.v1")
    with pytest.raises(InvalidInput):
        await trail.records.update(fine.id, Change(context=context), expect=1, by=me)
    plain = await make(trail, me, context=context)
    with pytest.raises(InvalidInput):
        await trail.records.update(plain.id, Change(schema_name="schema.def.v1"), expect=1, by=me)
    assert await make(trail, me, schema_name="x.v1")


# -- freshness --------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-14")
async def test_a_changed_definition_holds_for_the_next_call_also_in_another_open_trail(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    other = await open_again()
    made = await make(trail, me, schema_name="tool.v1", context={"name": "grep", "code": "…"})
    for each in (trail, other):
        assert await shown(each, me, made.id) == {"name": "grep", "code": "…"}
    definition = await define(trail, me, llm_hints={"exclude": ["code"]})
    for each in (trail, other):
        assert await shown(each, me, made.id) == {"name": "grep"}
    change = Change(context={"schema_name": "tool.v1", "llm_hints": {"include": ["code"]}, "json_schema": NEEDS_NAME})
    await other.records.update(definition.id, change, expect=1, by=me)
    for each in (trail, other):
        assert await shown(each, me, made.id) == {"code": "…"}
        with pytest.raises(SchemaViolation):
            await make(each, me, schema_name="tool.v1")
    await trail.records.delete(definition.id, by=me)
    for each in (trail, other):
        assert await shown(each, me, made.id) == {"name": "grep", "code": "…"}
        assert await make(each, me, schema_name="tool.v1")


async def test_a_definition_counts_for_the_drafts_after_its_batch(trail: Trail, me: Principal) -> None:
    context = {"schema_name": "tool.v1", "json_schema": NEEDS_NAME}
    definition = draft("About", schema_name="schema.def.v1", context=context)
    await trail.records.create_many([definition, draft("Early", schema_name="tool.v1")], by=me)
    assert not await succeeds(make(trail, me, schema_name="tool.v1"), SchemaViolation)


async def test_the_newer_of_two_definitions_of_a_schema_is_used(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, schema_name="tool.v1", context={"a": 1, "b": 2})
    await define(trail, me, llm_hints={"include": ["a"]})
    newer = await define(trail, me, llm_hints={"include": ["b"]})
    assert await shown(trail, me, made.id) == {"b": 2}
    await trail.records.delete(newer.id, by=me)
    assert await shown(trail, me, made.id) == {"a": 1}


async def test_an_expired_definition_governs_no_more(trail: Trail, me: Principal, clock: ManualClock) -> None:
    context = {"schema_name": "tool.v1", "json_schema": NEEDS_NAME}
    await make(trail, me, "Short", schema_name="schema.def.v1", context=context, ttl=lasting(clock, minutes=1))
    clock.advance(minutes=1)
    assert await make(trail, me, schema_name="tool.v1")


# -- hints ------------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-14")
async def test_hints_of_the_instance_come_before_those_of_the_schema(trail: Trail, me: Principal) -> None:
    await define(trail, me, llm_hints={"include": ["a"]})
    context = {"a": 1, "b": 2}
    plain = await make(trail, me, schema_name="tool.v1", context=context)
    own = await make(trail, me, schema_name="tool.v1", context=context, llm_hints={"include": ["b"]})
    empty = await make(trail, me, schema_name="tool.v1", context=context, llm_hints={})
    assert await shown(trail, me, plain.id) == {"a": 1}
    assert await shown(trail, me, own.id) == {"b": 2}
    assert await shown(trail, me, empty.id) == context
    for each in (plain, own, empty):
        assert (await trail.records.get(each.id, by=me)).context == context


@pytest.mark.req("RCR-13")
async def test_a_tool_is_read_without_code_permissions_limits_and_ui(trail: Trail, me: Principal) -> None:
    await bootstrap(trail, me)
    context = {
        "name": "grep",
        "description": "Find lines",
        "code": "export …",
        "input_schema": {"type": "object"},
        "permissions": {"net": False},
        "limits": {"timeout": 5},
        "ui_schema": {},
    }
    made = await make(trail, me, "grep", schema_name="tool.code.v1", context=context)
    read = await shown(trail, me, made.id)
    assert not {"code", "permissions", "limits", "ui_schema"} & read.keys()
    assert (read["name"], read["description"]) == ("grep", "Find lines")
    assert (await trail.records.get(made.id, by=me)).context == context


# -- embedding --------------------------------------------------------------------------------------------


async def vector(trail: Trail, by: Principal, title: str, /, **fields: Any) -> tuple[float, ...] | None:
    made = await make(trail, by, title, **fields)
    return (await trail.records.get(made.id, by=by, vector=True)).embedding


@pytest.mark.req("RCR-07")
@pytest.mark.parametrize("whose", ["instance", "schema"])
async def test_excluded_fields_do_not_influence_the_vector(meaning: Trail, me: Principal, whose: str) -> None:
    hints = {"exclude": ["code"]}
    if whose == "schema":
        await define(meaning, me, llm_hints=hints)
    fields: dict[str, Any] = {"schema_name": "tool.v1", "llm_hints": hints if whose == "instance" else None}
    text = "Search files for a pattern"
    plain = await vector(meaning, me, "grep", context={"text": text}, **fields)
    coded = await vector(meaning, me, "grep", context={"text": text, "code": "giraffe volcano"}, **fields)
    other = await vector(meaning, me, "grep", context={"text": text, "note": "giraffe volcano"}, **fields)
    assert plain is not None
    assert plain == coded
    assert plain != other


@pytest.mark.req("RCR-07")
async def test_the_vector_is_that_of_the_hinted_form_not_of_the_json(meaning: Trail, me: Principal) -> None:
    hints = {"template": "{{name}} finds lines", "mode": "replace"}
    hinted = await vector(meaning, me, "T", context={"name": "grep", "noise": "volcano"}, llm_hints=hints)
    assert hinted == await vector(meaning, me, "T", context={"content": "grep finds lines"})


async def test_a_record_that_is_never_embedded_has_no_keywords(trail: Trail, me: Principal) -> None:
    await define(trail, me, "log.v1", embed="never")
    assert (await make(trail, me, "Deployed slowly", schema_name="log.v1")).entity_keywords == ()
    assert {"deployed", "slowly"} <= set((await make(trail, me, "Deployed slowly")).entity_keywords)


@pytest.mark.req("RCR-07")
async def test_the_policy_never_leaves_the_vector_empty(meaning: Trail, me: Principal) -> None:
    await define(meaning, me, "log.v1", embed="never")
    assert await vector(meaning, me, "Logged", schema_name="log.v1") is None
    assert await vector(meaning, me, "Asked", embed="never") is None
    assert await vector(meaning, me, "Plain") is not None
    own = await vector(meaning, me, "Own vector", schema_name="log.v1", embedding=[1.0] + [0.0] * 255)
    assert own is not None


@pytest.mark.req("RCR-07")
async def test_an_update_makes_a_new_vector_when_the_text_changed_and_only_then(meaning: Trail, me: Principal) -> None:
    made = await make(meaning, me, "The cat sat", tags=["a"])

    async def present() -> tuple[float, ...] | None:
        return (await meaning.records.get(made.id, by=me, vector=True)).embedding

    first = await present()
    await meaning.records.update(made.id, Change(tags=["b"]), expect=1, by=me)
    assert await present() == first
    await meaning.records.update(made.id, Change(title="Quarterly revenue"), expect=2, by=me)
    assert await present() not in (None, first)
    await meaning.records.update(made.id, Change(title="The cat sat"), expect=3, by=me)
    assert await present() == first
    await meaning.records.update(made.id, Change(embed="never"), expect=4, by=me)
    assert await present() is None


@pytest.mark.req("RCR-07")
async def test_an_update_of_the_tags_does_not_embed_what_was_not_to_be_embedded(meaning: Trail, me: Principal) -> None:
    made = await make(meaning, me, "Private", embed="never")
    await meaning.records.update(made.id, Change(tags=["seen"]), expect=1, by=me)
    assert (await meaning.records.get(made.id, by=me, vector=True)).embedding is None


# -- TTL policies -----------------------------------------------------------------------------------------


@pytest.mark.req("RCR-11")
@pytest.mark.parametrize(
    ("schema", "tags", "lasts"),
    [
        ("tool.request.v1", ["health:check"], timedelta(minutes=5)),
        ("system.ping.v1", [], timedelta(minutes=10)),
        ("agent.thinking.v1", [], timedelta(hours=6)),
        ("browser.tab.context.v1", [], timedelta(minutes=5)),
        ("tool.request.v1", [], None),
        ("note.v1", ["health:check"], None),
    ],
)
async def test_each_schema_gets_the_expiry_of_its_policy(
    trail: Trail, me: Principal, clock: ManualClock, schema: str, tags: list[str], lasts: timedelta | None
) -> None:
    await bootstrap(trail, me)
    context = {"tool": "grep", "url": "https://example.org"}
    made = await make(trail, me, schema_name=schema, tags=tags, context=context)
    if lasts is None:
        assert made.ttl == NEVER
        return
    assert made.ttl == Ttl(kind="datetime", expires_at=clock.now() + lasts)
    clock.advance(seconds=lasts.total_seconds())
    with pytest.raises(NotFound):
        await trail.records.get(made.id, by=me)


@pytest.mark.req("RCR-11")
@pytest.mark.req("O11")
async def test_a_policy_is_data_and_holds_for_the_next_create_in_every_open_trail(
    trail: Trail, open_again: OpenAgain, me: Principal, stranger: Principal, clock: ManualClock
) -> None:
    other = await open_again()
    assert (await make(other, me, schema_name="my.v1")).ttl == NEVER
    written = await policy(trail, me, schema_name="my.v1", seconds=60, max_reads=3)
    made = await make(other, me, schema_name="my.v1")
    assert made.ttl == Ttl(kind="hybrid", expires_at=clock.now() + timedelta(seconds=60), max_reads=3)
    assert (await make(trail, stranger, schema_name="my.v1")).ttl == NEVER
    assert (await make(trail, me, schema_name="my.v1", ttl=NEVER)).ttl == NEVER
    await trail.records.update(written.id, Change(context={"schema_name": "my.v1", "max_reads": 1}), expect=1, by=me)
    assert (await make(other, me, schema_name="my.v1")).ttl == Ttl(kind="usage", max_reads=1)
    assert (await trail.records.get(made.id, by=me)).ttl == made.ttl
    await other.records.delete(written.id, by=me)
    assert (await make(trail, me, schema_name="my.v1")).ttl == NEVER


async def test_a_policy_does_not_change_what_is_updated(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, schema_name="my.v1")
    await policy(trail, me, schema_name="my.v1", seconds=60)
    assert (await trail.records.update(made.id, Change(title="B"), expect=1, by=me)).ttl == NEVER


async def test_a_policy_and_a_definition_of_one_schema_both_hold(trail: Trail, me: Principal) -> None:
    await define(trail, me, json_schema=NEEDS_NAME)
    await policy(trail, me, schema_name="tool.v1", max_reads=2)
    made = await make(trail, me, schema_name="tool.v1", context={"name": "x"})
    assert made.ttl == Ttl(kind="usage", max_reads=2)
    assert not await succeeds(make(trail, me, schema_name="tool.v1"), SchemaViolation)


@pytest.mark.parametrize(
    "context",
    [{}, {"seconds": 60}, {"schema_name": "x.v1"}, {"schema_name": "x.v1", "seconds": -1}, {"tags": 1}],
    ids=short,
)
async def test_a_policy_that_could_not_work_is_refused_when_it_is_written(
    trail: Trail, me: Principal, context: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        await make(trail, me, schema_name="ttl.policy.v1", context=context)
    assert await make(trail, me, schema_name="x.v1")
