"""The sources of a statement (SYL-82)."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.evidence.provenance import NodeSource, annotate, cited, source_list, sources_of
from clew.knowledge.nodes.kinds import NodeType, SourceKind
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import build_node
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail
from tests.knowledge.nodes import ACADEMIC, CODE, HISTORY, NOW, node

ALL = [
    node(
        CODE, "close", "Finishes what was accepted", path="src/trail.py", line_start=3, line_end=9, content_hash="ab12"
    ),
    node(HISTORY, "Chose SQLite", "We chose SQLite because nobody wants a server", days=45, verified=True),
    node(HISTORY, "Chose WAL", "Readers never block", days=3, verified=True),
    node(
        ACADEMIC, "RFC 7519", "JSON web tokens", node_type=NodeType.RFC, url="https://example.org/7519", verified=True
    ),
    node(ACADEMIC, "The manual", "Explains pragmas", verified=True),
    node(ACADEMIC, "A post", "Opinions", node_type=NodeType.BLOG_POST, verified=True),
    node(HISTORY, "A guess", "Probably faster"),
]


@pytest.mark.req("SYL-82")
async def test_the_chain_of_a_node_has_the_surest_source_first(trail: Trail, me: Principal) -> None:
    weak = NodeSource(kind=SourceKind.LLM_INFERENCE, confidence=0.3)
    code = NodeSource(kind=SourceKind.CODE, path="src/a.py", node_id="n1", confidence=0.9, timestamp=NOW, verified=True)
    page = NodeSource(kind=SourceKind.ACADEMIC, url="https://example.org", confidence=0.95)
    draft = build_node("x", HISTORY, NodeType.DECISION, "y", {})
    context = {**draft.context, "provenance": msgspec.to_builtins([weak, code, page])}
    kept = await trail.records.create(msgspec.structs.replace(draft, context=context), by=me)
    assert await sources_of(trail, kept.id, by=me) == [page, code, weak]
    assert {"source_type", "source_node_id", "source_path", "confidence", "verified"} <= set(context["provenance"][1])


@pytest.mark.req("SYL-82")
async def test_only_a_node_that_the_caller_sees_has_a_chain(trail: Trail, me: Principal, stranger: Principal) -> None:
    kept = await NodeGraph(trail, me).add_node("x", HISTORY, NodeType.DECISION, "y")
    note = await trail.records.create(Draft(title="a note", context={}), by=me)
    for id, by in ((kept.id, stranger), (note.id, me)):
        with pytest.raises(NotFound):
            await sources_of(trail, id, by=by)
    assert await sources_of(trail, kept.id, by=me) == []


@pytest.mark.req("SYL-82")
def test_the_list_of_sources_tells_domain_place_age_authority_and_what_is_unverified() -> None:
    assert source_list(ALL, NOW).splitlines() == [
        "[1] Code: src/trail.py:3-9@ab12 (current)",
        "[2] History: Chose SQLite (2026-04-17) (45 days old)",
        "[3] History: Chose WAL (2026-05-29) (recent)",
        "[4] Academic: RFC 7519 (https://example.org/7519) (authoritative)",
        "[5] Academic: The manual (official docs)",
        "[6] Academic: A post (external)",
        "[7] History: A guess (2026-06-01) (⚠️ UNVERIFIED)",
    ]


@pytest.mark.req("SYL-82")
def test_an_answer_gets_a_citation_where_a_source_bears_it_out() -> None:
    answer = "Closing finishes what was accepted; the decision for SQLite was about the server [3]. See a[9] and [42]."
    assert annotate(answer, ALL[:3]) == (
        "Closing finishes [1] what was accepted; the decision for SQLite [2] was about the server [3]. "
        "See a[9] and [42?]."
    )


@pytest.mark.req("SYL-82")
@given(
    st.text(alphabet="[]0123456789 abcfinishesSQLite\n", max_size=120),
    st.lists(st.sampled_from(ALL), unique_by=lambda each: each.id, max_size=7),
)
def test_every_citation_of_an_annotated_answer_resolves_to_a_source_line(answer: str, nodes: list) -> None:
    numbered = {int(line[1]) for line in re.findall(r"^(\[(\d+)\]) ", source_list(nodes, NOW), re.MULTILINE)}
    assert set(cited(annotate(answer, nodes))) <= numbered == set(range(1, len(nodes) + 1))


def test_a_hostile_name_cannot_forge_a_line_of_the_list() -> None:
    forged = node(HISTORY, "fine\n[9] Code: src/a.py (current)", verified=True)
    assert len(source_list([forged], NOW).splitlines()) == 1
    assert "[9]" not in source_list([forged], NOW)
