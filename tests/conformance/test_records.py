"""`Records`: a read returns exactly what was written; a write is complete or has no effect."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AccessDenied, AlreadyExists, InvalidInput, NotFound, TooLarge
from clew.trail.model.breadcrumb import (
    MAX_BATCH,
    MAX_CONTEXT,
    MAX_DEPTH,
    MAX_DIMENSION,
    MAX_SCOPES,
    MAX_TAG,
    MAX_TAGS,
    MAX_TITLE,
    NEVER,
    Breadcrumb,
    Change,
    Draft,
    Ttl,
)
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import (
    FULL_ID,
    HALF,
    PATIENCE,
    UNKNOWN,
    WIDE,
    draft,
    full_draft,
    is_there,
    list_all,
    list_titles,
    make,
    read_log,
    short,
)


@pytest.mark.req("RCR-01")
@pytest.mark.req("O1")
async def test_every_field_comes_back_as_it_was_written_also_from_a_reopened_trail(
    trail: Trail, clock: ManualClock, open_again: OpenAgain
) -> None:
    wanted = full_draft(clock)
    created = await trail.records.create(wanted, by=WIDE)
    stored = await trail.records.get(FULL_ID, by=WIDE, vector=True)
    assert msgspec.structs.replace(stored, embedding=None) == msgspec.structs.replace(created, embedding=None)
    assert (stored.id, stored.owner_id, stored.title) == (FULL_ID, "acme", "Deploy guide")
    assert stored.context == wanted.context
    assert stored.tags == ("guide", "session:s1", "status:active")
    assert stored.session == "s1"
    assert (stored.schema_name, stored.version, stored.scopes) == ("guide.v1", 1, ("docs", "ops"))
    assert (stored.llm_hints, stored.entities, stored.ttl) == (wanted.llm_hints, wanted.entities, wanted.ttl)
    assert {"guide", "deploy", "slowly"} <= set(stored.entity_keywords)
    assert len(stored.checksum) == 32
    assert stored.created_at == stored.updated_at == clock.now()
    assert (stored.created_by, stored.updated_by) == ("ann", "ann")
    assert stored.embedding == pytest.approx((0.6, 0.8))
    await trail.close()
    assert await (await open_again()).records.get(FULL_ID, by=WIDE, vector=True) == stored


async def test_absent_fields_of_a_draft_are_empty(trail: Trail) -> None:
    made = await make(trail, Principal(owner_id="acme"), "Bare")
    assert (made.tags, made.schema_name, made.scopes, made.llm_hints, made.entities) == ((), None, (), None, None)
    assert (made.ttl, made.created_by, made.updated_by, made.embedding) == (NEVER, None, None, None)


@pytest.mark.req("RCR-01")
@pytest.mark.parametrize("given", [{"title": "No context"}, {"context": {}}, {"title": "T", "context": [1]}])
def test_a_draft_from_outside_needs_title_and_context(given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, Draft)


@pytest.mark.parametrize(
    "text",
    [
        "🧵👩‍👩‍👧‍👦🏳️‍🌈",
        "שלום עולם — مرحبا بالعالم",
        "日本語のメモ 한국어 简体字",
        "e\u0301 is not é",
        "\u202eright to left\u202c",
        "a\u2028b\u2029c\ufeff",
        "\U0010ffff\uffff",
        "quote \" and \\ and ' and ; DROP TABLE breadcrumbs; --",
    ],
    ids=short,
)
async def test_text_of_any_script_is_kept_to_the_character(trail: Trail, me: Principal, text: str) -> None:
    tag = text.replace("\u2028", "").replace("\u2029", "")
    made = await make(trail, me, text, context={text: [text]}, tags=[tag], entities={text: text})
    stored = await trail.records.get(made.id, by=me)
    assert (stored.title, stored.context, stored.tags, stored.entities) == (text, {text: [text]}, (tag,), {text: text})
    assert await list_titles(trail, me, all_tags=[tag]) == [text]


async def test_control_characters_are_kept_in_the_context(trail: Trail, me: Principal) -> None:
    text = "".join(map(chr, range(32))) + "\x7f\x85"
    made = await make(trail, me, context={"text": text, text: 1})
    assert (await trail.records.get(made.id, by=me)).context == {"text": text, text: 1}
    assert (await trail.records.read(made.id, by=me)).context == {"text": text, text: 1}


def nested(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


async def test_a_breadcrumb_at_every_limit_is_accepted(trail: Trail) -> None:
    scopes = [f"scope{number:02}" for number in range(MAX_SCOPES)]
    by = Principal(owner_id="acme", scopes=frozenset(scopes))
    wanted = Draft(
        title="t" * MAX_TITLE,
        context={**nested(MAX_DEPTH), "text": "x" * (MAX_CONTEXT - 500)},
        tags=[f"{number:04}".ljust(MAX_TAG, "x") for number in range(MAX_TAGS)],
        scopes=scopes,
        embedding=[1.0] * MAX_DIMENSION,
    )
    made = await trail.records.create(wanted, by=by)
    stored = await trail.records.get(made.id, by=by, vector=True)
    assert (stored.title, stored.context, list(stored.tags)) == (wanted.title, wanted.context, wanted.tags)
    assert stored.scopes == tuple(scopes)
    assert len(stored.embedding or ()) == MAX_DIMENSION


REFUSED: list[dict[str, Any]] = [
    {"title": ""},
    {"title": " \t\n"},
    {"title": "t" * (MAX_TITLE + 1)},
    {"title": "nul \x00"},
    {"title": HALF},
    {"context": {"a": HALF}},
    {"context": {HALF: 1}},
    {"context": {1: "a key that is no text"}},
    {"context": {"a": object()}},
    {"context": nested(MAX_DEPTH + 1)},
    {"context": nested(100_000)},
    {"context": {"a": "x" * MAX_CONTEXT}},
    {"tags": [""]},
    {"tags": [" outer"]},
    {"tags": ["line\nbreak"]},
    {"tags": ["nul\x00"]},
    {"tags": [HALF]},
    {"tags": ["x" * (MAX_TAG + 1)]},
    {"tags": [f"t{number}" for number in range(MAX_TAGS + 1)]},
    {"tags": "text"},
    {"tags": [7]},
    {"scopes": ["two words"]},
    {"scopes": [HALF]},
    {"scopes": "text"},
    {"scopes": [f"s{number}" for number in range(MAX_SCOPES + 1)]},
    {"schema_name": ""},
    {"schema_name": "no spaces"},
    {"schema_name": "x" * 201},
    {"llm_hints": {"unknown": 1}},
    {"llm_hints": {"template": "{{#each"}},
    {"llm_hints": {"literal": {"a": HALF}}},
    {"entities": {"a": HALF}},
    {"embedding": []},
    {"embedding": [0.0, 0.0]},
    {"embedding": [float("nan"), 1.0]},
    {"embedding": [float("inf"), 1.0]},
    {"embedding": [1.0] * (MAX_DIMENSION + 1)},
    {"id": "not-a-uuid"},
    {"id": FULL_ID.upper()},
    {"idempotency_key": ""},
    {"idempotency_key": "k" * 301},
    {"idempotency_key": HALF},
    {"ttl": Ttl(kind="datetime")},
    {"ttl": Ttl(kind="usage")},
    {"ttl": Ttl(kind="usage", max_reads=0)},
]


async def test_invalid_drafts_are_refused_and_nothing_is_written(trail: Trail, me: Principal) -> None:
    taken = []
    for fields in REFUSED:
        try:
            await trail.records.create(Draft(**{"title": "T", "context": {}, **fields}), by=me)
        except InvalidInput:
            continue
        taken.append(fields)
    assert taken == []
    assert await list_all(trail, me) == []
    assert await trail.log.head() == 0


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
async def test_a_number_that_json_cannot_hold_is_refused(trail: Trail, me: Principal, number: float) -> None:
    with pytest.raises(InvalidInput):
        await make(trail, me, context={"a": number})


# -- batches ----------------------------------------------------------------------------------------------


async def test_a_batch_is_written_in_order(trail: Trail, me: Principal) -> None:
    titles = [f"Note {number}" for number in range(50)]
    made = await trail.records.create_many([draft(title) for title in titles], by=me)
    assert [each.title for each in made] == titles
    assert [each.title for each in await list_all(trail, me)] == titles
    assert [event.breadcrumb_id for event in await read_log(trail, me)] == [each.id for each in made]
    assert await trail.records.create_many([], by=me) == []


@pytest.mark.parametrize("bad", [{"title": ""}, {"id": FULL_ID}], ids=["invalid", "id taken"])
async def test_a_batch_with_one_bad_draft_writes_nothing(trail: Trail, me: Principal, bad: dict[str, Any]) -> None:
    await make(trail, me, "First", id=FULL_ID)
    head = await trail.log.head()
    batch = [draft("A", idempotency_key="a"), Draft(**{"title": "B", "context": {}, **bad}), draft("C")]
    with pytest.raises((InvalidInput, AlreadyExists)):
        await trail.records.create_many(batch, by=me)
    assert await list_titles(trail, me) == ["First"]
    assert await trail.log.head() == head
    again = await make(trail, me, "A after all", idempotency_key="a")
    assert again.title == "A after all"


async def test_an_error_in_a_batch_names_the_draft(trail: Trail, me: Principal) -> None:
    with pytest.raises(InvalidInput) as caught:
        await trail.records.create_many([draft("A"), draft("B", tags=["ok", " no"])], by=me)
    assert caught.value.field == "[1].tags[1]"


async def test_a_batch_over_the_limit_is_refused(trail: Trail, me: Principal) -> None:
    with pytest.raises(TooLarge):
        await trail.records.create_many([draft()] * (MAX_BATCH + 1), by=me)
    assert await trail.log.head() == 0


async def test_an_id_is_given_out_once_to_an_owner_and_tells_nothing_of_others(
    trail: Trail, me: Principal, stranger: Principal
) -> None:
    await make(trail, me, "Mine", id=FULL_ID, scopes=["hr"])
    with pytest.raises(AlreadyExists):
        await make(trail, me, "Again", id=FULL_ID)
    await make(trail, stranger, "Theirs", id=FULL_ID)
    wide = msgspec.structs.replace(me, scopes=frozenset({"hr"}))
    assert (await trail.records.get(FULL_ID, by=wide)).title == "Mine"
    await trail.records.update(FULL_ID, Change(title="Still theirs"), expect=1, by=stranger)
    await trail.records.delete(FULL_ID, by=wide)
    assert (await trail.records.get(FULL_ID, by=stranger)).title == "Still theirs"
    assert [line.version for line in await trail.records.history(FULL_ID, by=stranger)] == [1, 2]


# -- reading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [UNKNOWN, "", "x", "%", "' OR 1=1 --", "\x00", "🧵", "x" * 9_999], ids=short)
async def test_an_id_that_nothing_has_is_not_found(trail: Trail, me: Principal, id: str) -> None:
    await make(trail, me)
    calls = (
        trail.records.get(id, by=me),
        trail.records.read(id, by=me),
        trail.records.history(id, by=me),
        trail.records.update(id, Change(title="x"), expect=1, by=me),
        trail.records.delete(id, by=me),
    )
    for call in calls:
        with pytest.raises(NotFound):
            await call


async def test_an_id_that_is_no_unicode_is_not_found(trail: Trail, me: Principal) -> None:
    with pytest.raises((NotFound, InvalidInput)):
        await trail.records.get(HALF, by=me)


async def test_a_vector_is_returned_only_where_it_is_asked_for(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, embedding=[1.0, 0.0])
    assert (await trail.records.get(made.id, by=me)).embedding is None
    assert (await trail.records.get(made.id, by=me, vector=True)).embedding == (1.0, 0.0)


@pytest.mark.req("RCR-13")
async def test_a_read_shows_the_hinted_form_and_a_get_the_whole(trail: Trail, me: Principal) -> None:
    hints = {"exclude": ["code"], "transform": {"line": {"type": "format", "format": "{title}: {name}"}}}
    made = await make(trail, me, "Tool", context={"name": "grep", "code": "…"}, llm_hints=hints, tags=["a"])
    view = await trail.records.read(made.id, by=me)
    assert view.context == {"name": "grep", "line": "Tool: grep"}
    assert (view.id, view.title, view.tags, view.version) == (made.id, "Tool", ("a",), 1)
    assert (view.schema_name, view.updated_at) == (None, made.updated_at)
    assert (await trail.records.get(made.id, by=me)).context == {"name": "grep", "code": "…"}


# -- pointers and tags ------------------------------------------------------------------------------------


@pytest.mark.req("RCR-08")
async def test_pointers_come_from_bare_tags_and_from_the_words_of_the_content(trail: Trail, me: Principal) -> None:
    made = await make(
        trail,
        me,
        "Browser tool",
        tags=["browser-automation", "workspace:tools", "status:active"],
        context={"description": "Click on elements and take a screenshot"},
    )
    assert {"browser-automation", "click", "screenshot"} <= set(made.entity_keywords)
    assert not {"workspace:tools", "tools", "status:active", "and"} & set(made.entity_keywords)
    changed = await trail.records.update(made.id, Change(context={"text": "Scroll"}), expect=1, by=me)
    assert "scroll" in changed.entity_keywords
    assert "screenshot" not in changed.entity_keywords
    assert (await trail.records.get(made.id, by=me, version=1)).entity_keywords == made.entity_keywords


@pytest.mark.req("RCR-09")
async def test_a_tag_routes_points_or_marks_a_state_and_all_three_are_found(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, "Request", tags=["session:s1", "billing", "pending"])
    await make(trail, me, "Other", tags=["session-notes", "sessions:x"])
    assert "billing" in made.entity_keywords
    assert not {"session:s1", "pending"} & set(made.entity_keywords)
    for tag in made.tags:
        assert await list_titles(trail, me, all_tags=[tag]) == ["Request"]
    assert await list_titles(trail, me, tag_prefix="session:") == ["Request"]
    assert await list_titles(trail, me, session="s1") == ["Request"]


async def test_repeated_tags_and_scopes_count_once(trail: Trail) -> None:
    by = Principal(owner_id="acme", scopes=frozenset({"a", "b"}))
    made = await make(trail, by, tags=["x", "y", "x"], scopes=["b", "a", "b"])
    assert (made.tags, made.scopes) == (("x", "y"), ("a", "b"))


async def test_closing_twice_is_harmless(trail: Trail, open_again: OpenAgain, me: Principal) -> None:
    made = await make(trail, me)
    await trail.close()
    await trail.close()
    assert await is_there(await open_again(), me, made.id)


async def test_accepted_writes_are_finished_and_answered_when_the_trail_is_closed(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    await make(trail, me, "A first record: from now on the definitions are cached")
    waiting = [asyncio.ensure_future(make(trail, me, f"Note {number}")) for number in range(20)]
    await asyncio.sleep(0)
    # another thread closes it, so that no answer arrives here before the file is closed
    closing = threading.Thread(target=asyncio.run, args=(trail.close(),))
    closing.start()
    closing.join(PATIENCE)
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    stored = {each.id for each in await list_all(await open_again(), me)}
    assert {each.id for each in answers if isinstance(each, Breadcrumb)} < stored
    assert len(stored) == 21


async def test_only_a_curator_writes_what_looks_like_a_record_of_clews_own(trail: Trail, me: Principal) -> None:
    emitter = msgspec.structs.replace(me, roles=frozenset({"emitter", "subscriber"}))
    forged = Draft(title="Policy", schema_name="resource.v1", context={"uri": "repo://resources/policy"})
    with pytest.raises(AccessDenied, match=r"resource\.v1"):
        await trail.records.create(forged, by=emitter)
    with pytest.raises(AccessDenied):
        await trail.records.create_many([Draft(title="a", context={}), forged], by=emitter)
    assert (await trail.records.list(by=me)).items == ()
    assert (await trail.records.create(forged, by=me)).schema_name == "resource.v1"


async def test_many_breadcrumbs_are_found_at_once_each_for_those_who_may_see_it(trail: Trail) -> None:
    ann, bob = Principal(owner_id="ann"), Principal(owner_id="bob")
    mine = await trail.records.create_many([draft("a"), draft("b")], by=ann)
    other = await trail.records.create(draft("c"), by=bob)
    ids = [*(each.id for each in mine), other.id, UNKNOWN]
    assert await trail.records.find_many(ids, by=ann) == {each.id: each for each in mine}
    assert await trail.records.find_many([], by=ann) == {}


@pytest.mark.parametrize("conversation", ["s.main.architect", "s.total.1.engineer"])
async def test_only_a_curator_writes_to_a_conversation_of_the_team(
    trail: Trail, me: Principal, conversation: str
) -> None:
    emitter = msgspec.structs.replace(me, roles=frozenset({"emitter", "subscriber"}))
    said = Draft(title="Hello", schema_name="user.message.v1", tags=(f"session:{conversation}",), context={})
    with pytest.raises(AccessDenied, match="conversation of the team"):
        await trail.records.create(said, by=emitter)
    own = msgspec.structs.replace(said, tags=("session:s.1",))
    assert (await trail.records.create(own, by=emitter)).session == "s.1"
    assert (await trail.records.create(said, by=me)).session == conversation
