"""The knowledge layer on a real trail with the default embedder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AlreadyExists, CycleRefused, InvalidInput, NotFound, SchemaViolation
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import Node, NodeFilter, ScoredNode
from clew.llm import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.model.edge import EdgeType
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

CODE, HISTORY, ACADEMIC = NodeDomain.CODE, NodeDomain.HISTORY, NodeDomain.ACADEMIC


@pytest.fixture
async def trail(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Trail]:
    opened = await open_trail(f"sqlite://{tmp_path}/trail.db", clock, open_embedder("wordllama"))
    yield opened
    await opened.close()


@pytest.fixture
def graph(trail: Trail, me: Principal) -> NodeGraph:
    return NodeGraph(trail, me)


@pytest.fixture
async def garden(graph: NodeGraph, clock: ManualClock) -> dict[str, Node]:
    """A few nodes of every domain, one minute apart."""
    rows = [
        ("parse_token", CODE, NodeType.FUNCTION, "Checks the signature of a login token", "auth/token.py", "s1"),
        ("TokenStore", CODE, NodeType.STRUCT, "Keeps login tokens until they expire", "auth/store.py", "s1"),
        ("bake_bread", CODE, NodeType.FUNCTION, "Mixes flour, water and yeast", "kitchen/oven.py", "s2"),
        ("Chose JWT", HISTORY, NodeType.DECISION, "We sign login tokens instead of keeping sessions", None, "s2"),
        ("RFC 7519", ACADEMIC, NodeType.RFC, "JSON web tokens for login", None, None),
    ]
    found = {}
    for name, domain, node_type, content, path, session in rows:
        metadata = {"lang": "py", "lines": {"first": len(found)}} if domain is CODE else {}
        found[name] = await graph.add_node(
            name, domain, node_type, content, path=path, session_id=session, metadata=metadata
        )
        clock.advance(minutes=1)
    return found


def names(found: list[ScoredNode]) -> list[str]:
    return [one.node.name for one in found]


@pytest.mark.req("SYL-76")
async def test_a_node_comes_back_as_it_was_added(graph: NodeGraph, clock: ManualClock):
    added = await graph.add_node(
        "parse",
        CODE,
        NodeType.FUNCTION,
        "def parse(): ...",
        path="src/parse.py",
        session_id="s9",
        metadata={"lines": [1, 9]},
        trust=TrustLevel.GROUND,
        confidence=0.5,
        verification=Verification.CODE,
    )
    assert await graph.get_node(added.id) == added
    assert added == Node(
        id=added.id,
        name="parse",
        domain=CODE,
        node_type=NodeType.FUNCTION,
        content="def parse(): ...",
        path="src/parse.py",
        session_id="s9",
        metadata={"lines": [1, 9]},
        trust=100,
        confidence=0.5,
        verified=True,
        verification=Verification.CODE,
        created_at=clock.now(),
        updated_at=clock.now(),
    )


@pytest.mark.req("SYL-76")
async def test_a_node_without_more_has_the_defaults(graph: NodeGraph):
    added = await graph.add_node("x", HISTORY, NodeType.OUTCOME, "y")
    assert (added.trust, added.confidence, added.verification) == (50, 1.0, Verification.NONE)
    assert (added.path, added.session_id, added.metadata) == (None, None, {})


@pytest.mark.req("SYL-76")
async def test_a_node_is_a_breadcrumb_with_tags_and_the_vector_of_name_and_content(
    graph: NodeGraph, trail: Trail, me: Principal
):
    added = await graph.add_node("parse", CODE, NodeType.FUNCTION, "reads text", path="a/b.py", session_id="s1")
    stored = await trail.records.get(added.id, by=me, vector=True)
    assert stored.schema_name == "node.v1"
    assert stored.tags == ("domain:code", "node:function", "session:s1")
    expected = np.frombuffer(open_embedder("wordllama").embed(["parse. reads text"])[0], np.float32)
    assert np.allclose(stored.embedding, expected, atol=1e-6)


@pytest.mark.req("SYL-71")
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"node_type": NodeType.PAPER}, "node_type"),
        ({"domain": 7}, "domain"),
        ({"trust": 101}, "trust"),
        ({"trust": -1}, "trust"),
        ({"confidence": 1.1}, "confidence"),
        ({"confidence": float("nan")}, "confidence"),
        ({"name": ""}, "title"),
    ],
)
async def test_an_invalid_node_is_refused_and_not_written(graph, trail, me, fields, field):
    asked = {"name": "x", "domain": CODE, "node_type": NodeType.FILE, "content": "y", **fields}
    with pytest.raises(InvalidInput) as refused:
        await graph.add_node(**asked)
    assert refused.value.field == field
    assert (await trail.records.list(Selector(schema_name="node.v1"), by=me)).items == ()


@pytest.mark.req("SYL-76")
async def test_get_node_raises_for_what_is_no_node(graph: NodeGraph, trail: Trail, me: Principal, stranger: Principal):
    other = await trail.records.create(Draft(title="a note", context={}), by=me)
    added = await graph.add_node("x", CODE, NodeType.FILE, "y")
    with pytest.raises(NotFound):
        await graph.get_node(other.id)
    with pytest.raises(NotFound):
        await graph.similar_to_node(other.id)
    with pytest.raises(NotFound):
        await NodeGraph(trail, stranger).get_node(added.id)


@pytest.mark.req("SYL-76")
async def test_similar_nodes_come_nearest_first_and_only_nodes(graph, garden, trail, me):
    await trail.records.create(Draft(title="login token", context={"text": "login token"}), by=me)
    found = await graph.similar_nodes("login token", k=4)
    assert "bake_bread" not in names(found)
    assert len(found) == 4
    assert [one.similarity for one in found] == sorted((one.similarity for one in found), reverse=True)
    assert 0.3 < found[0].similarity <= 1.0
    assert names(await graph.similar_nodes("yeast and flour", k=1)) == ["bake_bread"]


@pytest.mark.req("SYL-76")
@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (NodeFilter(domain=CODE), {"parse_token", "TokenStore", "bake_bread"}),
        (NodeFilter(domain=ACADEMIC), {"RFC 7519"}),
        (NodeFilter(node_types=[NodeType.FUNCTION, NodeType.DECISION]), {"parse_token", "bake_bread", "Chose JWT"}),
        (NodeFilter(domain=CODE, node_types=[NodeType.DECISION]), set()),
        (NodeFilter(session_id="s2"), {"bake_bread", "Chose JWT"}),
        (NodeFilter(path="auth/*.py"), {"parse_token", "TokenStore"}),
        (NodeFilter(path="**/oven.py"), {"bake_bread"}),
        (NodeFilter(metadata={"lang": "py"}), {"parse_token", "TokenStore", "bake_bread"}),
        (NodeFilter(metadata={"lang": "py", "lines.first": 1}), {"TokenStore"}),
        (NodeFilter(session_id="s2", domain=CODE), {"bake_bread"}),
    ],
)
async def test_a_filter_leaves_exactly_what_it_describes(graph, garden, filter, expected):
    assert set(names(await graph.similar_nodes("login token", filter=filter))) == expected


@pytest.mark.req("SYL-76")
async def test_a_filter_by_time_keeps_what_came_later(graph, garden):
    after = garden["bake_bread"].created_at
    found = await graph.similar_nodes("login token", filter=NodeFilter(created_after=after))
    assert set(names(found)) == {"Chose JWT", "RFC 7519"}


@pytest.mark.req("SYL-74")
async def test_a_filtered_search_returns_k_when_k_exist(graph: NodeGraph):
    for at in range(60):
        await graph.add_node(f"login token {at}", CODE, NodeType.FUNCTION, "login token")
    for at in range(5):
        await graph.add_node(f"far away {at}", HISTORY, NodeType.FAILURE, "the oven burnt the bread")
    found = await graph.similar_nodes("login token", k=5, filter=NodeFilter(domain=HISTORY))
    assert sorted(names(found)) == [f"far away {at}" for at in range(5)]


@pytest.mark.req("SYL-76")
async def test_similar_to_a_node_leaves_the_node_out(graph, garden):
    found = await graph.similar_to_node(garden["parse_token"].id, k=10)
    assert len(found) == 4
    assert "parse_token" not in names(found)
    assert names(found)[-1] == "bake_bread"
    nearest = await graph.similar_to_node(garden["parse_token"].id, k=1, filter=NodeFilter(domain=HISTORY))
    assert names(nearest) == ["Chose JWT"]


@pytest.mark.req("SYL-75")
async def test_a_deleted_node_is_no_longer_similar_and_has_no_edges(graph, garden, trail, me):
    first, second = garden["parse_token"], garden["TokenStore"]
    await graph.add_edge(first.id, second.id, EdgeType.CALLS)
    await trail.records.delete(second.id, by=me)
    assert "TokenStore" not in names(await graph.similar_nodes("login token"))
    assert await graph.traverse(first.id, EdgeType.CALLS) == []


@pytest.mark.req("SYL-76")
async def test_edges_are_followed_in_both_directions_and_to_a_depth(graph, garden):
    token, store, bread = (garden[name].id for name in ("parse_token", "TokenStore", "bake_bread"))
    await graph.add_edge(token, store, EdgeType.CALLS)
    await graph.add_edge(store, bread, EdgeType.CALLS)
    await graph.add_edge(token, bread, EdgeType.IMPORTS)

    async def reached(*asked) -> list[str]:
        return [node.name for node in await graph.traverse(*asked)]

    assert await reached(token, EdgeType.CALLS) == ["TokenStore"]
    assert await reached(token, EdgeType.CALLS, "outgoing", 2) == ["TokenStore", "bake_bread"]
    assert await reached(bread, EdgeType.CALLS, "incoming", 2) == ["TokenStore", "parse_token"]
    assert await reached(bread, EdgeType.CALLED_BY) == ["TokenStore"]
    assert await reached(token, "imports") == ["bake_bread"]
    assert await reached(bread, EdgeType.CALLS) == []


@pytest.mark.req("SYL-69")
async def test_an_edge_is_refused_twice_to_nowhere_and_in_a_cycle(graph, garden, me):
    token, store = garden["parse_token"].id, garden["TokenStore"].id
    edge = await graph.add_edge(token, store, EdgeType.SUPERSEDES)
    assert (edge.weight, edge.metadata, edge.type) == (1.0, {}, "supersedes")
    with pytest.raises(AlreadyExists):
        await graph.add_edge(token, store, EdgeType.SUPERSEDES)
    with pytest.raises(CycleRefused):
        await graph.add_edge(store, token, EdgeType.SUPERSEDES)
    with pytest.raises(NotFound):
        await graph.add_edge(token, "00000000-0000-7000-8000-000000000000", EdgeType.CALLS)


@pytest.mark.req("SYL-76")
async def test_a_walk_skips_records_that_are_not_nodes(graph, garden, trail, me):
    note = await trail.records.create(Draft(title="a note", context={}), by=me)
    await graph.add_edge(garden["parse_token"].id, note.id, EdgeType.REFERENCES)
    await graph.add_edge(note.id, garden["RFC 7519"].id, EdgeType.REFERENCES)
    found = await graph.traverse(garden["parse_token"].id, EdgeType.REFERENCES, depth=2)
    assert [node.name for node in found] == ["RFC 7519"]


@pytest.mark.req("SYL-76")
async def test_nodes_and_vectors_are_there_after_closing(tmp_path: Path, me: Principal):
    url = f"sqlite://{tmp_path}/kept.db"
    first = await open_trail(url, embedder=open_embedder("wordllama"))
    added = await NodeGraph(first, me).add_node("bake_bread", CODE, NodeType.FUNCTION, "Mixes flour and yeast")
    await first.close()
    again = await open_trail(url, embedder=open_embedder("wordllama"))
    found = await NodeGraph(again, me).similar_nodes("flour")
    await again.close()
    assert [one.node for one in found] == [added]


@pytest.mark.req("SYL-76")
async def test_a_node_without_a_vector_is_similar_to_nothing(tmp_path: Path, me: Principal):
    trail = await open_trail(f"sqlite://{tmp_path}/plain.db")
    graph = NodeGraph(trail, me)
    added = await graph.add_node("x", CODE, NodeType.FILE, "y")
    assert await graph.similar_to_node(added.id) == []
    await trail.close()


FULL: dict[str, Any] = {
    "path": "src/parse.py",
    "package": "parse",
    "line_start": 3,
    "line_end": 9,
    "signature": "def parse(text: str) -> Tree",
    "session_id": "s1",
    "timestamp": datetime(2025, 12, 1, tzinfo=UTC),
    "category": "decision",
    "url": "https://example.org/parsing",
    "source": "example.org",
    "authors": ("A. Writer", "B. Writer"),
    "published_at": datetime(2020, 2, 29, 12, 30, tzinfo=UTC),
    "content_hash": "da39a3ee",
    "metadata": {"lang": "py"},
    "verified": True,
    "verification": Verification.USER,
    "confidence": 0.75,
    "trust": 70,
    "expires_at": datetime(2027, 1, 1, 0, 0, 0, 5, tzinfo=UTC),
}


@pytest.mark.req("SYL-68")
async def test_a_node_keeps_every_field_it_was_given(graph: NodeGraph, trail: Trail, me: Principal, clock: ManualClock):
    added = await graph.add_node("parse", CODE, NodeType.FUNCTION, "reads text", **FULL)
    found = await graph.get_node(added.id)
    assert {field: getattr(found, field) for field in FULL} == FULL
    assert (found.created_at, found.updated_at, found.superseded_by) == (clock.now(), clock.now(), None)
    named = msgspec.to_builtins(found)
    assert (named["trust_level"], named["verification_type"], named["verified"]) == (70, 3, True)
    stored = (await trail.records.get(added.id, by=me)).context
    assert (stored["trust_level"], stored["verification_type"], stored["verified"]) == (70, 3, True)


@pytest.mark.req("SYL-68")
async def test_the_trail_itself_refuses_a_domain_that_is_none_and_a_type_of_another(trail: Trail, me: Principal):
    await bootstrap(trail, me)
    for domain, node_type in ((3, 0), (-1, 0), ("code", 0), (0, 200), (1, 2), (2, 104)):
        draft = Draft(
            title="x", schema_name="node.v1", context={"domain": domain, "node_type": node_type, "content": ""}
        )
        with pytest.raises(SchemaViolation):
            await trail.records.create(draft, by=me)
    bare = Draft(title="x", schema_name="node.v1", context={"domain": 2, "node_type": 203, "content": "y"})
    made = await trail.records.create(bare, by=me)
    node = await NodeGraph(trail, me).get_node(made.id)
    assert (node.verified, node.verification, node.confidence, node.trust) == (False, Verification.NONE, 1.0, 50)
    assert (node.expires_at, node.superseded_by, node.metadata) == (None, None, {})


@pytest.mark.req("SYL-68")
async def test_nodes_of_earlier_releases_are_still_read(graph: NodeGraph, trail: Trail, me: Principal):
    await bootstrap(trail, me)
    old = {"content": "y", "domain": 0, "node_type": 2, "trust": 90, "confidence": 0.5, "verification": 1}
    made = await trail.records.create(
        Draft(title="x", schema_name="node.v1", context={**old, "metadata": {"a": 1}}, tags=("domain:code",)), by=me
    )
    node = await graph.get_node(made.id)
    assert (node.trust, node.confidence, node.verification, node.verified) == (90, 0.5, Verification.CODE, True)
    assert node.metadata == {"a": 1}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"line_start": 0}, "line_start"),
        ({"line_start": 9, "line_end": 3}, "line_end"),
        ({"line_end": 3}, "line_end"),
        ({"timestamp": datetime(2026, 1, 1)}, "timestamp"),
    ],
)
async def test_lines_and_times_that_cannot_be_are_refused(graph: NodeGraph, fields: dict[str, Any], field: str):
    with pytest.raises(InvalidInput) as refused:
        await graph.add_node("x", CODE, NodeType.FILE, "y", **fields)
    assert refused.value.field == field


@pytest.mark.req("SYL-79")
async def test_a_node_that_failed_a_check_has_a_visible_mark_and_the_vector_of_its_text(graph, trail, me):
    doubted = await graph.add_node(
        "cache", HISTORY, NodeType.HISTORY_ENTRY, "we use Redis for caching", metadata={"needs_review": True}
    )
    plain = await graph.add_node("cache", HISTORY, NodeType.HISTORY_ENTRY, "we use Redis for caching")
    found = {one.node.id: one.node.content for one in await graph.similar_nodes("Redis")}
    assert found == {doubted.id: "[UNVERIFIED] we use Redis for caching", plain.id: "we use Redis for caching"}
    view = await trail.records.read(doubted.id, by=me)
    assert view.context == {"content": "we use Redis for caching", "[UNVERIFIED]": True}
    vectors = [(await trail.records.get(node.id, by=me, vector=True)).embedding for node in (doubted, plain)]
    assert vectors[0] == vectors[1]


@pytest.mark.req("SYL-81")
async def test_a_superseded_node_names_its_successor_and_leads_to_the_present(graph: NodeGraph):
    first, second, third = [await graph.add_node(f"v{at}", HISTORY, NodeType.DECISION, "y") for at in range(3)]
    old = await graph.supersede(first.id, second.id)
    await graph.supersede(second.id, third.id)
    assert old.superseded_by == second.id
    assert (await graph.get_node(first.id)).superseded_by == second.id
    assert [node.id for node in await graph.traverse(second.id, EdgeType.SUPERSEDES)] == [first.id]
    for each in (first, second, third):
        assert (await graph.current(each.id)).id == third.id
    again = await graph.supersede(first.id, second.id)
    assert again.superseded_by == second.id


@pytest.mark.req("SYL-81")
async def test_nothing_supersedes_itself_what_is_missing_or_its_own_successor(graph: NodeGraph):
    old, new = [await graph.add_node(f"v{at}", HISTORY, NodeType.DECISION, "y") for at in range(2)]
    await graph.supersede(old.id, new.id)
    with pytest.raises(CycleRefused):
        await graph.supersede(new.id, old.id)
    with pytest.raises(InvalidInput):
        await graph.supersede(new.id, new.id)
    with pytest.raises(NotFound):
        await graph.supersede(new.id, "00000000-0000-7000-8000-000000000000")
    assert (await graph.get_node(new.id)).superseded_by is None


@pytest.mark.req("SYL-68")
async def test_a_node_whose_successor_is_deleted_is_superseded_no_longer(graph: NodeGraph, trail, me):
    old, new = [await graph.add_node(f"login {at}", HISTORY, NodeType.DECISION, "token") for at in range(2)]
    await graph.supersede(old.id, new.id)
    await trail.records.delete(new.id, by=me)
    assert (await graph.get_node(old.id)).superseded_by is None
    assert (await graph.current(old.id)).id == old.id
    assert [one.node.superseded_by for one in await graph.similar_nodes("login")] == [None]


@pytest.mark.req("SYL-81")
async def test_superseding_stands_up_to_others_who_write_to_the_node(graph: NodeGraph, trail, me, monkeypatch):
    old, new = [await graph.add_node(f"v{at}", HISTORY, NodeType.DECISION, "y") for at in range(2)]
    get, written = trail.records.get, []

    async def get_then_written(id: str, **asked: Any):
        found = await get(id, **asked)
        if id == old.id and len(written) == 1:
            await trail.records.update(id, Change(title="renamed"), expect=found.version, by=me)
        written.extend([id] if id == old.id else [])
        return found

    monkeypatch.setattr(trail.records, "get", get_then_written)
    assert (await graph.supersede(old.id, new.id)).superseded_by == new.id
    assert (await graph.get_node(old.id)).name == "renamed"


@pytest.mark.req("SYL-81")
async def test_clean_up_takes_only_history_that_expired_over_thirty_days_ago(graph: NodeGraph, clock: ManualClock):
    now = clock.now()
    ages = {"long ago": 31, "just over": 30.0001, "thirty": 30, "lately": 1, "to come": -5}
    for domain, node_type in ((CODE, NodeType.FILE), (HISTORY, NodeType.DECISION), (ACADEMIC, NodeType.RFC)):
        for name, days in ages.items():
            await graph.add_node(name, domain, node_type, domain.label, expires_at=now - timedelta(days=days))
        await graph.add_node("lasting", domain, node_type, domain.label)
    assert await graph.remove_expired(now) == 2
    assert await graph.remove_expired(now) == 0
    for domain in (CODE, HISTORY, ACADEMIC):
        left = set(names(await graph.similar_nodes(domain.label, k=50, filter=NodeFilter(domain=domain))))
        gone = {"long ago", "just over"} if domain is HISTORY else set()
        assert left == {*ages, "lasting"} - gone
