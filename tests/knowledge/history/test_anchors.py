"""Nodes on the trail that stand for code."""

from __future__ import annotations

import asyncio

import pytest

from clew.access import Principal
from clew.errors import InvalidInput
from clew.knowledge.code.models import CodeRef, parse_ref
from clew.knowledge.history.links import anchor_id, ensure_anchors
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.trail.store import Trail


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("src/a.py", CodeRef(path="src/a.py")),
        ("./src/a.py", CodeRef(path="src/a.py")),
        ("code:src/a.py", CodeRef(path="src/a.py")),
        ("src/a.py:12", CodeRef(path="src/a.py", line=12)),
        ("src/a.py:12-20", CodeRef(path="src/a.py", line=12)),
        ("src/a.py#Trail.close", CodeRef(path="src/a.py", qualname="Trail.close")),
        ("src\\a.cpp#ns::run", CodeRef(path="src/a.cpp", qualname="ns::run")),
        ("docs/größe.md", CodeRef(path="docs/größe.md")),
    ],
)
def test_code_is_named_by_path_line_or_symbol(written: str, meant: CodeRef) -> None:
    assert parse_ref(written) == meant


@pytest.mark.parametrize("written", ["", "  ", "/etc/passwd", "../up.py", "a/../../b.py", "#only", "a\x00b.py", "a\nb"])
def test_a_place_outside_of_the_repository_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput):
        parse_ref(written)


async def test_a_place_has_one_node_however_often_it_is_named(trail: Trail, me: Principal) -> None:
    named = ["src/a.py", "src/a.py:3", "src/a.py#run", "./src/a.py"]
    answers = await asyncio.gather(*(ensure_anchors(trail, named, by=me) for _ in range(8)))

    assert {tuple(ids) for ids in answers} == {(anchor_id("acme", "src/a.py"), anchor_id("acme", "src/a.py#run"))}
    node = await NodeGraph(trail, me).get_node(anchor_id("acme", "src/a.py#run"))
    assert (node.domain, node.node_type, node.path, node.name) == (
        NodeDomain.CODE,
        NodeType.FUNCTION,
        "src/a.py",
        "run",
    )


async def test_owners_have_anchors_of_their_own(trail: Trail, me: Principal, stranger: Principal) -> None:
    [mine] = await ensure_anchors(trail, ["a.py"], by=me)
    [other] = await ensure_anchors(trail, ["a.py"], by=stranger)
    assert mine != other


async def test_one_bad_reference_among_good_ones_writes_nothing(trail: Trail, me: Principal) -> None:
    before = (await trail.upkeep.stats(by=me)).breadcrumbs
    with pytest.raises(InvalidInput):
        await ensure_anchors(trail, ["a.py", "/absolute.py"], by=me)
    assert (await trail.upkeep.stats(by=me)).breadcrumbs == before
