"""Questions across code, history and references, on a small graph and without a model."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import NotFound
from clew.knowledge.history.journal import Archive
from clew.knowledge.history.links import CrossDomain, Related, ensure_anchors, link
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import EVERY_NODE, Node, NodeFilter
from clew.trail.model.edge import EdgeType
from clew.trail.store import Trail


@pytest.fixture
def graph(trail: Trail, me: Principal) -> CrossDomain:
    return CrossDomain(trail, me)


@pytest.fixture
async def ids(trail: Trail, me: Principal, clock: ManualClock) -> Mapping[str, str]:
    """Login code, the decision behind it, its sources, a bug of last month and a change of yesterday."""
    nodes, archive = NodeGraph(trail, me), Archive(trail, me)
    check, refresh = await ensure_anchors(trail, ["auth/jwt.py#validate_token", "auth/refresh.py"], by=me)
    rfc = (await nodes.add_node("RFC 7519", NodeDomain.ACADEMIC, NodeType.RFC, "JSON web tokens")).id
    bearer = (
        await nodes.add_node("Bearer tokens", NodeDomain.ACADEMIC, NodeType.BEST_PRACTICE, "Tokens in a header")
    ).id
    chosen = (await archive.store_summary("We chose JWT over sessions for login", "decision", "s1")).node_id
    await nodes.add_edge(chosen, rfc, EdgeType.BASED_ON)
    bug = (await archive.store_summary("The expiry of a token could be passed by", "bug_fix", "s1")).node_id
    await nodes.add_edge(bug, check, EdgeType.MODIFIED)
    clock.advance(days=30)
    change = (await archive.store_summary("Login tokens are renewed in the background", "feature", "s2")).node_id
    await nodes.add_edge(change, refresh, EdgeType.CREATED)
    await nodes.add_edge(change, check, EdgeType.MODIFIED)
    await nodes.add_edge(rfc, check, EdgeType.DOCUMENTS)
    await link(trail, [(check, bearer)], EdgeType.IMPLEMENTS_PATTERN, by=me)
    await link(trail, [(bearer, change)], EdgeType.INSPIRED_BY, by=me)
    clock.advance(days=1)
    return {
        "check": check,
        "refresh": refresh,
        "rfc": rfc,
        "bearer": bearer,
        "chosen": chosen,
        "bug": bug,
        "change": change,
    }


def found(nodes: list[Node]) -> list[str]:
    return [node.id for node in nodes]


def of(answer: Related, domain: NodeDomain) -> list[str]:
    return [node.id for node in answer.linked if node.domain is domain]


@pytest.mark.req("SYL-77", "O6")
async def test_edges_are_followed_between_all_three_domains(graph: CrossDomain, ids: Mapping[str, str]) -> None:
    assert found(await graph.linked(ids["check"], NodeDomain.HISTORY)) == [ids["change"], ids["bug"]]
    assert set(found(await graph.linked(ids["change"], NodeDomain.CODE))) == {ids["check"], ids["refresh"]}
    assert set(found(await graph.linked(ids["check"], NodeDomain.ACADEMIC))) == {ids["rfc"], ids["bearer"]}
    assert found(await graph.linked(ids["chosen"], NodeDomain.ACADEMIC)) == [ids["rfc"]]
    assert found(await graph.linked(ids["change"], NodeDomain.ACADEMIC)) == [ids["bearer"]]
    assert found(await graph.linked(ids["rfc"], NodeDomain.CODE)) == [ids["check"]]
    assert found(await graph.linked(ids["bearer"], NodeDomain.CODE)) == [ids["check"]]
    assert found(await graph.linked(ids["rfc"], NodeDomain.HISTORY)) == [ids["chosen"]]
    assert found(await graph.linked(ids["bearer"], NodeDomain.HISTORY)) == [ids["change"]]


@pytest.mark.req("SYL-77")
async def test_code_may_be_named_by_its_place(graph: CrossDomain, ids: Mapping[str, str]) -> None:
    assert found(await graph.linked("auth/jwt.py#validate_token", NodeDomain.HISTORY)) == [ids["change"], ids["bug"]]
    assert await graph.linked("never/written.py") == []


@pytest.mark.req("SYL-77")
async def test_similar_nodes_come_with_their_neighbours(graph: CrossDomain, ids: Mapping[str, str]) -> None:
    answers = {each.node.id: each for each in await graph.search("login token", 10, EVERY_NODE)}
    assert of(answers[ids["check"]], NodeDomain.HISTORY) == [ids["change"], ids["bug"]]
    assert set(of(answers[ids["check"]], NodeDomain.ACADEMIC)) == {ids["rfc"], ids["bearer"]}
    assert of(answers[ids["chosen"]], NodeDomain.ACADEMIC) == [ids["rfc"]]
    assert of(answers[ids["rfc"]], NodeDomain.CODE) == [ids["check"]]

    only = await graph.search("token", 10, NodeFilter(path="auth/refresh*"))
    assert [each.node.id for each in only] == [ids["refresh"]]
    assert len(await graph.search("login token", 2, EVERY_NODE)) == 2

    code = NodeFilter(domain=NodeDomain.CODE)
    patterns = await graph.search("validate token login", 10, code, along=EdgeType.IMPLEMENTS_PATTERN)
    assert [(each.node.id, found(list(each.linked))) for each in patterns if each.linked] == [
        (ids["check"], [ids["bearer"]])
    ]


@pytest.mark.req("SYL-98")
async def test_edges_between_domains_have_their_weights(trail: Trail, me: Principal, ids: Mapping[str, str]) -> None:
    [pattern] = await link(trail, [(ids["check"], ids["bearer"])], EdgeType.IMPLEMENTS_PATTERN, by=me)
    [inspired] = await link(trail, [(ids["bearer"], ids["change"])], EdgeType.INSPIRED_BY, by=me)
    assert (pattern.type, pattern.weight) == ("implements_pattern", 0.85)
    assert (inspired.type, inspired.weight) == ("inspired_by", 0.8)
    again = await trail.edges.of(ids["bearer"], by=me, types=["implements_pattern", "inspired_by"])
    assert len(again) == 2


async def test_owners_do_not_see_each_others_relations(
    trail: Trail, stranger: Principal, ids: Mapping[str, str]
) -> None:
    theirs = CrossDomain(trail, stranger)
    assert await theirs.linked("auth/jwt.py#validate_token") == []
    assert await theirs.linked(ids["check"]) == []
    assert await theirs.search("login token", 10, EVERY_NODE) == []
    with pytest.raises(NotFound):
        await link(trail, [(ids["bearer"], ids["change"])], EdgeType.INSPIRED_BY, by=stranger)
