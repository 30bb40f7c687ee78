"""Sources that disagree (SYL-84, SYL-85)."""

from __future__ import annotations

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import NotFound
from clew.knowledge.evidence.conflicts import (
    SourceConflict,
    claims_of,
    detect,
    list_conflicts,
    record_conflicts,
    resolve_conflict,
    winner,
)
from clew.knowledge.nodes.kinds import ConflictKind
from clew.knowledge.nodes.node_store import Node
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail
from tests.knowledge.nodes import ACADEMIC, CODE, HISTORY, NOW, node


@pytest.mark.req("SYL-84")
def test_code_wins_over_all_else_then_trust_then_age_and_the_reason_is_reported() -> None:
    code, guess = node(CODE, days=900), node(HISTORY, days=1)
    fresh, old = node(HISTORY, days=1, verified=True), node(HISTORY, days=100, verified=True)
    newer, older = node(HISTORY, days=40, verified=True), node(HISTORY, days=50, verified=True)
    for a, b, best, reason in (
        (code, fresh, code, "code is the source of truth"),
        (fresh, old, fresh, "higher trust: Recent, verified over Old history"),
        (fresh, guess, fresh, "higher trust: Recent, verified over Unverified inference"),
        (newer, older, newer, "equally trusted, the newer one counts"),
    ):
        for one, other in ((a, b), (b, a)):
            assert winner(one, other, NOW) == (best, reason)


@pytest.mark.req("SYL-84")
def test_the_newer_of_two_code_nodes_wins() -> None:
    older, newer = node(CODE, days=2), node(CODE, days=1)
    assert winner(older, newer, NOW)[0] == newer


def kinds(nodes: list[Node], **more: object) -> list[ConflictKind]:
    return [each.kind for each in detect(nodes, NOW, **more)]  # type: ignore[arg-type]


@pytest.mark.req("SYL-85")
@pytest.mark.parametrize(("days", "expected"), [(30.01, [ConflictKind.TEMPORAL]), (30, []), (3, [])])
def test_statements_of_one_subject_over_thirty_days_apart_may_have_changed(days: float, expected: list) -> None:
    old, new = node(HISTORY, "Cache size", "it is 10", days=days), node(HISTORY, "cache SIZE", "it is 20")
    assert kinds([old, new]) == expected
    assert kinds([old, node(HISTORY, "Cache age", "it is 20")]) == []
    assert kinds([old, node(HISTORY, "Cache size", "It  is 10")]) == [], "the same said twice is no conflict"


@pytest.mark.req("SYL-85")
def test_a_conflict_over_time_names_oldest_newest_and_which_to_believe() -> None:
    group = [node(HISTORY, "cache", str(days), days=days, verified=True) for days in (40, 90, 2)]
    [found] = detect(group, NOW)
    assert (found.node_a, found.node_b, found.subject) == (group[1].id, group[2].id, "cache")
    assert "88 days" in found.description
    assert found.resolution.startswith("cache of 2026-05-30 (higher trust")


@pytest.mark.req("SYL-85")
def test_history_that_says_something_is_used_which_the_code_does_not_show_is_a_mismatch() -> None:
    code = node(CODE, "connect", "import sqlite3\nsqlite3.connect(path)", path="src/db.py")
    said = node(HISTORY, "storage", "The trail uses Postgres for everything.")
    near_miss = node(HISTORY, "storage", "The trail uses SQLite3, in one file.")
    [found] = detect([said, code], NOW)
    assert (found.kind, found.node_a, found.node_b) == (ConflictKind.SOURCE_MISMATCH, said.id, code.id)
    assert "Postgres" in found.description
    assert kinds([near_miss, code]) == []
    assert kinds([said]) == [], "without code there is nothing to hold it against"
    assert kinds([node(ACADEMIC, "x", said.content), code]) == [], "literature does not speak of this code"
    assert kinds([said, code], in_code=lambda name: name == "postgres") == [], "other code shows it"


@pytest.mark.req("SYL-85")
def test_two_claims_that_different_things_are_used_for_the_same_contradict_each_other() -> None:
    first = node(HISTORY, "a", "The login service uses JWT for its sessions. It is quick.")
    second = node(HISTORY, "b", "The login service uses cookies for its sessions!")
    [found] = detect([first, second], NOW)
    assert (found.kind, found.node_a, found.node_b) == (ConflictKind.SEMANTIC, first.id, second.id)
    assert "JWT" in found.description
    assert "cookies" in found.description


@pytest.mark.req("SYL-85")
@pytest.mark.parametrize(
    "other",
    [
        "The login service uses jwt for its sessions.",
        "The mail queue uses cookies now and then.",
        "The login service has cookies for its sessions.",
        "Our box uses cookies for any of it.",
        "The mail service uses cookies for its sessions.",
        "The login service uses cookies to greet returning guests.",
    ],
    ids=[
        "the same in other words",
        "another subject",
        "no claim of use",
        "only short words shared",
        "half of another subject",
        "another purpose",
    ],
)
def test_apparent_contradictions_are_none(other: str) -> None:
    assert kinds([node(HISTORY, "a", "The login service uses JWT for its sessions."), node(HISTORY, "b", other)]) == []


@pytest.mark.req("SYL-85")
def test_a_comment_in_code_contradicts_no_document() -> None:
    comment = node(CODE, "Version", "The version of this library uses three numbers for its releases.")
    document = node(ACADEMIC, "Releasing", "The version of this library uses a suffix for its releases.")
    assert kinds([comment, document]) == []
    assert kinds([msgspec.structs.replace(comment, domain=ACADEMIC), document]) == [ConflictKind.SEMANTIC]


@pytest.mark.req("SYL-85")
def test_claims_are_sentences_of_eleven_to_a_hundred_and_ninety_nine_letters() -> None:
    text = f"{'a' * 10}. {'b' * 11}. {'c' * 199}. {'d' * 200}. v1.2.3 is one sentence"
    assert claims_of(text) == ["b" * 11, "c" * 199, "v1.2.3 is one sentence"]
    assert claims_of("[UNVERIFIED] we use Redis here") == ["we use Redis here"]


def test_code_of_one_name_has_no_age_and_what_was_superseded_is_settled() -> None:
    assert kinds([node(CODE, "main", "a", days=90), node(CODE, "main", "b")]) == []
    assert kinds([node(HISTORY, "main", "a", days=90), node(CODE, "main", "b")]) == [ConflictKind.TEMPORAL]
    assert kinds([node(HISTORY, "main", "a", days=90, superseded_by="n-new"), node(HISTORY, "main", "b")]) == []


def test_a_flood_of_claims_is_bounded() -> None:
    flood = [node(HISTORY, f"n{at}", f"The login service uses thing{at} for its sessions.") for at in range(300)]
    assert len(detect(flood, NOW)) == 200 * 199 // 2


@pytest.mark.req("SYL-85")
async def test_conflicts_are_kept_listed_newest_first_and_settled(
    trail: Trail, me: Principal, stranger: Principal, clock: ManualClock
) -> None:
    await bootstrap(trail, me)
    first = SourceConflict(
        kind=ConflictKind.TEMPORAL, subject="cache", node_a="a", node_b="b", description="it changed"
    )
    second = SourceConflict(kind=ConflictKind.SEMANTIC, subject="login", node_a="a", node_b="c", description="x or y")
    await record_conflicts(trail, [first], by=me)
    [kept] = await list_conflicts(trail, by=me)
    clock.advance(minutes=1)
    await record_conflicts(trail, [second], by=me)
    later, last = await list_conflicts(trail, by=me)
    assert last == kept
    assert (later.detected_at, later.kind, later.description) == (clock.now(), ConflictKind.SEMANTIC, "x or y")
    assert await list_conflicts(trail, by=stranger) == []

    settled = await resolve_conflict(trail, kept.id, "the newer one", by=me, clock=clock)

    assert (settled.resolved, settled.resolution, settled.resolved_at) == (True, "the newer one", clock.now())
    assert [each.id for each in await list_conflicts(trail, by=me)] == [later.id]


@pytest.mark.req("SYL-85")
async def test_a_conflict_that_is_noticed_again_is_kept_once_and_not_opened_again(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    first = SourceConflict(kind=ConflictKind.SEMANTIC, subject="login", node_a="a", node_b="b", description="x or y")
    await record_conflicts(trail, [first], by=me)
    turned = SourceConflict(kind=ConflictKind.SEMANTIC, subject="Login", node_a="b", node_b="a", description="y or x")
    await record_conflicts(trail, [turned], by=me)
    [kept] = await list_conflicts(trail, by=me)
    await resolve_conflict(trail, kept.id, "x", by=me, clock=clock)
    await record_conflicts(trail, [first], by=me)
    assert await list_conflicts(trail, by=me) == []


async def test_only_a_conflict_can_be_settled(trail: Trail, me: Principal, clock: ManualClock) -> None:
    note = await trail.records.create(Draft(title="a note", context={}), by=me)
    with pytest.raises(NotFound):
        await resolve_conflict(trail, note.id, "x", by=me, clock=clock)
