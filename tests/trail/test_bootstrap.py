from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import NotFound, SchemaViolation
from clew.trail import open_trail
from clew.trail.bootstrap import MARKER_SCHEMA, BootstrapPiece, BootstrapReport, bootstrap, read_pieces
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.policies import parse_policy
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail

ANN = Principal(owner_id="ann")
BOB = Principal(owner_id="bob")
KEYS = tuple(piece.key for piece in read_pieces())

FIRST = BootstrapPiece(key="a", title="A", schema_name="page.v1", context={"text": "one"}, tags=("page",))
SECOND = BootstrapPiece(
    key="b", title="B", schema_name="page.v1", context={"text": "one"}, llm_hints={"exclude": ["x"]}
)


async def find(trail: Trail, title: str, by: Principal = ANN) -> Breadcrumb:
    page = await trail.records.list(by=by, limit=100)
    return next(found for found in page.items if found.title == title)


@pytest.mark.req("RCR-53")
async def test_the_first_run_creates_everything_and_the_second_nothing(trail: Trail) -> None:
    first = await bootstrap(trail, ANN)
    head = await trail.log.head()
    second = await bootstrap(trail, ANN)

    assert first == BootstrapReport(created=KEYS)
    assert second == BootstrapReport(unchanged=KEYS)
    assert await trail.log.head() == head == len(KEYS) + 1


@pytest.mark.req("RCR-53")
async def test_a_missing_piece_is_repaired(trail: Trail) -> None:
    await bootstrap(trail, ANN)
    piece = await find(trail, "Schema tool.code.v1")
    await trail.records.delete(piece.id, by=ANN)

    report = await bootstrap(trail, ANN)

    assert report.repaired == ("schema/tool.code.v1",)
    assert report.created == ()
    repaired = await trail.records.get(piece.id, by=ANN)
    assert (repaired.context, repaired.tags) == (piece.context, piece.tags)


@pytest.mark.req("RCR-53")
async def test_a_marker_names_every_piece(trail: Trail) -> None:
    await bootstrap(trail, ANN)

    [marker] = (await trail.records.list(Selector(schema_name=MARKER_SCHEMA), by=ANN)).items
    assert set(marker.context["pieces"]) == set(KEYS)


async def test_a_piece_of_a_new_release_is_created_and_a_changed_one_brought_up_to_date(trail: Trail) -> None:
    await bootstrap(trail, ANN, [FIRST])
    changed = msgspec.structs.replace(FIRST, context={"text": "two"}, title="A, better")

    report = await bootstrap(trail, ANN, [changed, SECOND])

    assert report == BootstrapReport(created=("b",), repaired=("a",))
    stored = await find(trail, "A, better")
    assert (stored.context, stored.version) == ({"text": "two"}, 2)
    assert await bootstrap(trail, ANN, [changed, SECOND]) == BootstrapReport(unchanged=("a", "b"))


async def test_pieces_that_the_owner_edited_stay_with_a_new_release(trail: Trail) -> None:
    await bootstrap(trail, ANN, [FIRST, SECOND])
    stored = await find(trail, "A")
    await trail.records.update(stored.id, Change(context={"text": "mine"}), expect=1, by=ANN)

    same = await bootstrap(trail, ANN, [FIRST, SECOND])
    newer = await bootstrap(trail, ANN, [msgspec.structs.replace(FIRST, context={"text": "two"}), SECOND])

    assert same.unchanged == newer.unchanged == ("a", "b")
    assert (await find(trail, "A")).context == {"text": "mine"}


async def test_an_edit_that_is_taken_back_follows_new_releases_again(trail: Trail) -> None:
    await bootstrap(trail, ANN, [FIRST])
    stored = await find(trail, "A")
    await trail.records.update(stored.id, Change(tags=("page", "x")), expect=1, by=ANN)
    await bootstrap(trail, ANN, [FIRST])
    await trail.records.update(stored.id, Change(tags=("page",)), expect=2, by=ANN)

    report = await bootstrap(trail, ANN, [msgspec.structs.replace(FIRST, context={"text": "two"})])

    assert report.repaired == ("a",)


async def test_without_its_marker_nothing_is_overwritten_and_the_marker_comes_back(trail: Trail) -> None:
    await bootstrap(trail, ANN, [FIRST, SECOND])
    await trail.records.delete((await find(trail, "What was set up")).id, by=ANN)

    report = await bootstrap(trail, ANN, [msgspec.structs.replace(FIRST, context={"text": "two"}), SECOND])

    assert report == BootstrapReport(unchanged=("a", "b"))
    assert (await find(trail, "A")).context == {"text": "one"}
    assert set((await find(trail, "What was set up")).context["pieces"]) == {"b"}


async def test_each_owner_has_pieces_of_its_own(trail: Trail) -> None:
    await bootstrap(trail, ANN, [FIRST])
    report = await bootstrap(trail, BOB, [FIRST])

    assert report.created == ("a",)
    anns, bobs = await find(trail, "A"), await find(trail, "A", BOB)
    assert anns.id != bobs.id
    with pytest.raises(NotFound):
        await trail.records.get(bobs.id, by=ANN)


async def test_ids_are_the_same_on_every_trail(trail: Trail) -> None:
    await bootstrap(trail, ANN, [FIRST])
    other = await open_trail("sqlite://:memory:")
    try:
        await bootstrap(other, ANN, [FIRST])
        assert (await find(other, "A")).id == (await find(trail, "A")).id
    finally:
        await other.close()


async def test_runs_at_the_same_time_write_each_piece_once(trail: Trail) -> None:
    reports = await asyncio.gather(*(bootstrap(trail, ANN) for _ in range(5)))

    assert sorted(len(report.created) for report in reports) == [0, 0, 0, 0, len(KEYS)]
    assert await trail.log.head() == len(KEYS) + 1


# -- what comes with it -------------------------------------------------------------------------------------


def test_every_key_is_there_once() -> None:
    assert len(KEYS) == len(set(KEYS))


@pytest.mark.parametrize(
    "name",
    [
        "agent.context.v1",
        "agent.def.v1",
        "agent.response.v1",
        "browser.tab.context.v1",
        "note.v1",
        "schema.def.v1",
        "system.bootstrap.v1",
        "system.hygiene.v1",
        "tool.code.v1",
        "tool.request.v1",
        "tool.response.v1",
        "ttl.policy.v1",
        "user.message.v1",
    ],
)
async def test_every_schema_is_defined_and_described(trail: Trail, name: str) -> None:
    await bootstrap(trail, ANN)
    match = ContextMatch(path="schema_name", value=name)
    page = await trail.records.list(Selector(schema_name="schema.def.v1", context_match=(match,)), by=ANN)

    [definition] = page.items
    assert definition.context["description"]
    assert definition.context["json_schema"]["type"] == "object"


@pytest.mark.req("RCR-11")
@pytest.mark.parametrize(
    ("schema_name", "tags", "context", "lives"),
    [
        ("tool.request.v1", ("health:check",), {"tool": "x"}, timedelta(minutes=5)),
        ("tool.request.v1", (), {"tool": "x"}, None),
        ("system.ping.v1", (), {}, timedelta(minutes=10)),
        ("agent.thinking.v1", (), {}, timedelta(hours=6)),
        ("browser.tab.context.v1", (), {"url": "https://example.org"}, timedelta(minutes=5)),
        ("note.v1", (), {}, None),
    ],
)
async def test_each_policy_gives_its_expiry_on_create(
    trail: Trail,
    clock: ManualClock,
    schema_name: str,
    tags: tuple[str, ...],
    context: dict[str, str],
    lives: timedelta | None,
) -> None:
    await bootstrap(trail, ANN)
    draft = Draft(title="Any", schema_name=schema_name, tags=tags, context=context)

    written = await trail.records.create(draft, by=ANN)

    assert written.ttl.expires_at == (None if lives is None else clock.now() + lives)


@pytest.mark.req("RCR-11")
async def test_a_further_policy_needs_no_code(trail: Trail, clock: ManualClock) -> None:
    context = {"schema_name": "draft.v1", "seconds": 90}
    await trail.records.create(
        Draft(title="Drafts are short-lived", schema_name="ttl.policy.v1", context=context), by=ANN
    )

    written = await trail.records.create(Draft(title="A draft", schema_name="draft.v1", context={}), by=ANN)

    assert written.ttl.expires_at == clock.now() + timedelta(seconds=90)


def test_every_packaged_policy_is_valid() -> None:
    policies = [piece for piece in read_pieces() if piece.schema_name == "ttl.policy.v1"]

    assert len(policies) == 5
    assert all(parse_policy(piece.context).seconds for piece in policies)


@pytest.mark.req("RCR-13")
async def test_a_model_does_not_see_how_a_tool_is_made(trail: Trail) -> None:
    await bootstrap(trail, ANN)
    context = {
        "name": "adder",
        "description": "Adds",
        "code": "...",
        "permissions": {},
        "limits": {},
        "ui_schema": {},
        "input_schema": {"type": "object"},
    }
    tool = await trail.records.create(
        Draft(title="Adder", schema_name="tool.code.v1", tags=("tool:adder",), context=context), by=ANN
    )

    view = await trail.records.read(tool.id, by=ANN)

    assert view.context == {"name": "adder", "description": "Adds", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("schema_name", "context"),
    [
        ("user.message.v1", {"source": "extension"}),
        ("agent.response.v1", {"message": 7}),
        ("agent.context.v1", {}),
        ("agent.def.v1", {"agent_id": ""}),
        ("tool.code.v1", {"name": "x"}),
        ("tool.request.v1", {"input": {}}),
        ("tool.response.v1", {"request_id": "r"}),
        ("browser.tab.context.v1", {"title": "x"}),
        ("system.hygiene.v1", {"runs_completed": 1}),
    ],
)
async def test_a_context_without_its_key_fields_is_refused(
    trail: Trail, schema_name: str, context: dict[str, object]
) -> None:
    await bootstrap(trail, ANN)

    with pytest.raises(SchemaViolation):
        await trail.records.create(Draft(title="Any", schema_name=schema_name, context=context), by=ANN)


@pytest.mark.parametrize(
    ("schema_name", "context"),
    [
        ("user.message.v1", {"message": "Hello", "content": "Hello", "source": "extension", "more": [1]}),
        ("user.message.v1", {"content": "Hello"}),
        ("agent.response.v1", {"message": "Hi", "creator": {"type": "agent"}, "tool_requests": []}),
        ("agent.context.v1", {"consumer_id": "assistant", "breadcrumbs": [], "token_estimate": 450}),
        ("agent.def.v1", {"agent_id": "assistant", "subscriptions": {"selectors": []}}),
        ("tool.code.v1", {"name": "x", "code": ""}),
        ("tool.request.v1", {"tool": "x", "input": {"any": "thing"}, "requestId": "r", "requestedBy": "a"}),
        ("tool.response.v1", {"status": "error", "error": "no", "tool": "x"}),
        ("browser.tab.context.v1", {"tabId": 123, "url": "https://example.org"}),
        ("note.v1", {"anything": ["goes"]}),
    ],
)
async def test_a_context_with_its_key_fields_may_have_other_fields(
    trail: Trail, schema_name: str, context: dict[str, object]
) -> None:
    await bootstrap(trail, ANN)

    written = await trail.records.create(Draft(title="Any", schema_name=schema_name, context=context), by=ANN)

    assert written.context == context
