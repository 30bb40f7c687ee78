"""From trees to drafts: addresses, fields, limits and hostile trees."""

from __future__ import annotations

import base64
import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.domain import Domain
from clew.catalog.indexing.document_nodes import (
    MAX_CONTENT,
    MAX_NODES,
    IndexedDocument,
    SourcePlace,
    build_drafts,
    effective_scopes,
    node_digest,
    resource_id,
    resource_uri,
)
from clew.catalog.resource import Pipeline, ResourceNode
from clew.catalog.route import parse_route
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import check_context, check_tags, check_title
from tests.catalog.sample_domains import MemorySource

PLACE = SourcePlace(
    owner_id="acme", domain="warehouse", source_id="memory:one", base_path="facts", scopes=("admin", "internal")
)


def a_node(path: str = "facts/a", content: str = "text", **more: object) -> ResourceNode:
    return msgspec.structs.replace(ResourceNode(id=path, name=path, path=path, content=content), **more)


def index(*nodes: ResourceNode, place: SourcePlace = PLACE) -> IndexedDocument:
    return build_drafts(nodes, place, document="a document", now_ms=1_700_000_000_000)


@pytest.mark.req("ERN-19")
def test_a_table_of_three_columns_becomes_four_drafts() -> None:
    columns = [a_node(f"facts/fact_orders/columns/{name}") for name in ("id", "total", "placed_at")]
    found = index(a_node("facts/fact_orders", children=columns))
    assert [draft.context["path"] for draft in found.drafts.values()] == [
        "facts/fact_orders",
        "facts/fact_orders/columns/id",
        "facts/fact_orders/columns/total",
        "facts/fact_orders/columns/placed_at",
    ]
    assert found.skipped == []


@pytest.mark.req("ERN-20")
def test_the_index_document_has_exactly_the_promised_fields() -> None:
    node = a_node(
        "facts/fact_orders/columns/id", "the number", name="Id", description="A key", type="column", quality=80
    )
    (uri, draft), *_ = index(node).drafts.items()
    assert uri == "warehouse://resources/facts/fact_orders/columns/id"
    assert draft.context == {
        "id": base64.b64encode(uri.encode()).decode(),
        "uri": uri,
        "domain": "warehouse",
        "path": "facts/fact_orders/columns/id",
        "source_id": "memory:one",
        "name": "Id",
        "content": "the number",
        "description": "A key",
        "scopes": ["admin", "internal"],
        "is_unrestricted": False,
        "resource_type": "column",
        "path_segment": "facts",
        "quality_score": 80,
        "indexed_at": 1_700_000_000_000,
    }
    assert (draft.title, draft.schema_name, draft.scopes) == ("Id", "resource.v1", ("admin", "internal"))
    assert draft.tags[0] == "domain:warehouse"
    assert draft.tags[2:4] == ("type:column", "segment:facts")
    assert draft.tags[4].startswith("document:")


@pytest.mark.req("ERN-21")
def test_effective_scopes_are_those_of_the_domain_and_of_the_pipeline() -> None:
    domain = Domain(name="docs", description="Docs.", scopes=frozenset({"internal"}))
    pipeline = Pipeline(source=MemorySource({}), formats=[], scopes=frozenset({"admin"}))
    assert effective_scopes(domain, pipeline) == ("admin", "internal")
    assert (
        effective_scopes(Domain(name="docs", description="Docs."), Pipeline(source=MemorySource({}), formats=[])) == ()
    )


def test_a_resource_without_scopes_is_unrestricted() -> None:
    (draft,) = index(a_node(), place=msgspec.structs.replace(PLACE, scopes=())).drafts.values()
    assert (draft.context["scopes"], draft.context["is_unrestricted"]) == ([], True)


@pytest.mark.req("ERN-16")
@pytest.mark.parametrize("path", ["guides/intro", "/guides/intro/", "intro", "guides//intro"])
def test_a_uri_starts_with_the_base_path_once(path: str) -> None:
    assert resource_uri("docs", "guides", path) == "docs://resources/guides/intro"


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("über uns", "docs://resources/%C3%BCber%20uns"),
        ("a%20b", "docs://resources/a%20b"),
        ("../../etc/passwd", "docs://resources/%2E./%2E./etc/passwd"),
        ("./x", "docs://resources/%2E/x"),
        ("раypal", "docs://resources/%D1%80%D0%B0ypal"),
        ("half \ud800", "docs://resources/half%20%3F"),
    ],
)
def test_characters_that_a_route_cannot_have_are_encoded(path: str, uri: str) -> None:
    assert resource_uri("docs", "", path) == uri


@pytest.mark.parametrize("path", ["", "/", " ", "x" * 1_001])
def test_a_path_without_an_address_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        resource_uri("docs", "", path)


@given(st.text(max_size=60), st.text(alphabet=string.ascii_letters + "/._% -", max_size=20))
def test_every_uri_is_a_route_below_its_base_path(path: str, base: str) -> None:
    try:
        uri = resource_uri("docs", base, path)
    except InvalidInput:
        assert not (path.replace("/", "") + base.replace("/", "")).strip()
        return
    assert str(parse_route(uri)) == uri
    assert resource_uri("docs", base, parse_route(uri).path) == uri, "an address is not encoded twice"


def test_the_id_depends_on_owner_and_uri_only() -> None:
    assert resource_id("acme", "docs://resources/a") == resource_id("acme", "docs://resources/a")
    assert resource_id("acme", "docs://resources/a") != resource_id("other", "docs://resources/a")
    assert resource_id("acme", "docs://resources/a") != resource_id("acme", "docs://resources/b")


def test_the_first_of_two_nodes_with_one_path_wins_and_the_other_is_reported() -> None:
    found = index(a_node(content="first"), a_node(content="second"))
    assert [draft.context["content"] for draft in found.drafts.values()] == ["first"]
    assert "second time" in found.skipped[0].reason
    assert found.skipped[0].document == "a document"


@pytest.mark.req("ERN-19")
def test_a_cyclic_tree_ends_with_each_node_once() -> None:
    below: list[ResourceNode] = []
    top = a_node("facts/top", children=below)
    below += [a_node("facts/top/below", children=[top]), a_node("facts/top/last")]
    found = index(top)
    assert [draft.context["path"] for draft in found.drafts.values()] == [
        "facts/top",
        "facts/top/below",
        "facts/top/last",
    ]
    assert "second time" in found.skipped[0].reason


def test_an_enormous_document_is_cut_with_a_note() -> None:
    found = index(*(a_node(f"facts/{number}") for number in range(MAX_NODES + 5)))
    assert len(found.drafts) == MAX_NODES
    assert found.skipped[0].reason == "it has over 3,000 nodes; the rest is left out"


def test_as_many_nodes_as_allowed_are_all_taken() -> None:
    found = index(*(a_node(f"facts/{number}") for number in range(MAX_NODES)))
    assert (len(found.drafts), found.skipped) == (MAX_NODES, [])


def test_a_very_deep_tree_is_walked_without_recursion() -> None:
    node = a_node("facts/bottom")
    for depth in range(2_500):
        node = a_node(f"facts/{depth}", children=[node])
    assert len(index(node).drafts) == 2_501


def test_a_long_text_is_cut_with_a_note() -> None:
    found = index(a_node(content="x" * (MAX_CONTENT + 1)))
    (draft,) = found.drafts.values()
    assert len(draft.context["content"]) == MAX_CONTENT
    assert found.skipped[0].reason == "warehouse://resources/facts/a is cut to 200,000 of 200,001 characters"


@pytest.mark.parametrize("text", ["", " \n", "\x00\x01", "\ud800 half", "line\nbreak", "x" * 5_000, "日本語 🧵"])
def test_any_node_can_be_stored(text: str) -> None:
    found = index(a_node(content=text * 3, name=text, description=text, type=text, quality=10**9))
    (draft,) = found.drafts.values()
    check_title(draft.title)
    check_context(draft.context)
    check_tags(draft.tags)
    assert draft.context["quality_score"] == 100
    assert "\n" not in draft.title


def test_the_worst_content_fits_a_breadcrumb() -> None:
    (draft,) = index(a_node(content="\x01" * MAX_CONTENT)).drafts.values()
    check_context(draft.context)


def test_the_digest_ignores_when_it_was_indexed_and_who_may_see_it() -> None:
    open_to_all = msgspec.structs.replace(PLACE, scopes=())
    (one,) = build_drafts([a_node()], PLACE, document="d", now_ms=1).drafts.values()
    (two,) = build_drafts([a_node()], open_to_all, document="d", now_ms=2).drafts.values()
    (other,) = build_drafts([a_node(content="else")], PLACE, document="d", now_ms=1).drafts.values()
    assert node_digest(one) == node_digest(two) != node_digest(other)


def test_text_that_looks_like_a_key_is_not_stored() -> None:
    keys = (
        "ghp_" + "a1B2" * 9,
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    )
    node = ResourceNode(id="a", name="a", path="a", content=" and ".join(keys), description=keys[0])

    indexed = build_drafts([node], PLACE, document="a", now_ms=0)

    (draft,) = indexed.drafts.values()
    assert not any(key in str(draft.context) for key in (*keys, "MIIE"))
    assert "[masked]" in draft.context["content"]


def test_a_key_across_the_limit_is_not_stored_in_part() -> None:
    key = "ghp_" + "a1B2" * 9
    (draft,) = index(a_node(content="x " * (MAX_CONTENT // 2 - 5) + key)).drafts.values()
    assert "ghp_" not in draft.context["content"]
    assert len(draft.context["content"]) <= MAX_CONTENT
