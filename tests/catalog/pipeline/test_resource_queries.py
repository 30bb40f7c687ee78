"""Visibility, search, filters and order of resources after a refresh."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from clew.catalog.catalog import Catalog
from clew.catalog.domain import Domain
from clew.catalog.indexing.resource_queries import list_resources, select_resources
from clew.catalog.indexing.source_ledger import keeper
from clew.catalog.resource import Pipeline, ResourceNode
from clew.errors import InvalidInput, SourceError
from clew.trail.bootstrap import bootstrap
from clew.trail.model.query import SearchRequest
from tests.catalog.pipeline.conftest import Shop
from tests.catalog.sample_domains import FixedFormat, MemorySource, OutlineFormat, a_domain


@pytest.mark.req("ERN-21")
async def test_resources_need_the_scopes_of_domain_and_pipeline(shop: Shop) -> None:
    pipeline = Pipeline(source=MemorySource({"a": "x"}), formats=[OutlineFormat()], scopes=frozenset({"admin"}))
    domain = Domain(name="docs", description="D.", scopes=frozenset({"internal"}), extractors=[pipeline])
    await shop.refresh(domain)
    assert await shop.contents() == await shop.contents("admin") == await shop.contents("internal") == {}
    assert await shop.contents("admin", "internal") == {"a": "x"}
    (found,) = await list_resources(shop.trail, keeper(shop.me, ["admin", "internal"]))
    assert (found.context["scopes"], found.context["is_unrestricted"]) == (["admin", "internal"], False)


@pytest.mark.req("ERN-21")
@pytest.mark.parametrize("is_down", [False, True])
async def test_changed_scopes_apply_at_once_even_when_the_source_is_down(shop: Shop, is_down: bool) -> None:
    source = MemorySource({"a": "x = 1"})
    await shop.refresh(a_domain(source, scopes=frozenset({"old"})))
    source.list_failure = SourceError("memory", "is down") if is_down else None
    await shop.refresh(a_domain(source, scopes=frozenset({"new"})))
    assert await shop.contents("old") == {}
    assert len(await shop.contents("new")) == 2
    source.list_failure = None
    await shop.refresh(a_domain(source))
    (found, _) = await list_resources(shop.trail, shop.me)
    assert (found.context["scopes"], found.context["is_unrestricted"]) == ([], True)
    assert source.fetched == ["a"], "scopes are no reason to fetch"


@pytest.mark.req("ERN-22")
async def test_hidden_resources_do_not_count_against_the_limit_of_a_caller(shop: Shop) -> None:
    secret = MemorySource({f"s{n}": "refund refund refund" for n in range(50)}, "memory:secret")
    plain = MemorySource({f"p{n}": f"refund, among {n * 10} other words" for n in range(5)}, "memory:plain")
    domain = Domain(
        name="docs",
        description="D.",
        scopes=frozenset({"a"}),
        extractors=[
            Pipeline(source=secret, formats=[OutlineFormat()], scopes=frozenset({"b"})),
            Pipeline(source=plain, formats=[OutlineFormat()]),
        ],
    )
    await shop.refresh(domain, 0)
    await shop.refresh(domain, 1)
    request = SearchRequest(text="refund", selector=select_resources(domain="docs"), limit=5)
    caller = msgspec.structs.replace(shop.me, scopes=frozenset({"a"}))
    hits = (await shop.trail.index.search(request, by=caller)).hits
    assert {hit.breadcrumb.context["name"] for hit in hits} == {"p0", "p1", "p2", "p3", "p4"}
    assert (await shop.trail.index.search(request, by=shop.me)).hits == ()
    insider = msgspec.structs.replace(shop.me, scopes=frozenset({"a", "b"}))
    assert len((await shop.trail.index.search(request, by=insider)).hits) == 5


@pytest.mark.req("ERN-20")
async def test_a_search_looks_at_name_content_and_description_only(shop: Shop) -> None:
    await bootstrap(shop.trail, shop.me)
    node = ResourceNode(id="x", name="quokka", path="wombat/x", content="numbat", description="bilby", type="kind")
    await shop.refresh(a_domain(MemorySource({"a": "x"}), formats=[FixedFormat([node])]))

    async def finds(text: str) -> bool:
        request = SearchRequest(text=text, selector=select_resources(domain="docs"), ranking="text")
        return bool((await shop.trail.index.search(request, by=shop.me)).hits)

    assert [await finds(word) for word in ("quokka", "numbat", "bilby", "wombat", "kind", "memory")] == [
        *[True] * 3,
        *[False] * 3,
    ]


@pytest.mark.req("ERN-20")
async def test_every_filter_and_sort_works(shop: Shop) -> None:
    nodes = [
        ResourceNode(id="a", name="a", path="facts/a", content="", type="table", quality=10),
        ResourceNode(id="b", name="b", path="facts/b", content="", type="column", quality=30),
        ResourceNode(id="c", name="c", path="über/c", content="", type="a type with spaces", quality=20),
    ]
    one, two = MemorySource({"a": "x"}, "memory:1"), MemorySource({"b": "x = 1"}, "memory:2")
    await shop.refresh(a_domain(one, name="first", formats=[FixedFormat(nodes)]))
    shop.clock.advance(seconds=1)
    await shop.refresh(a_domain(two, name="second", scopes=frozenset({"admin"})))
    by = msgspec.structs.replace(shop.me, scopes=frozenset({"admin"}))

    catalog = Catalog(shop.trail, shop.clock, owner=shop.me)

    async def names(**filters: Any) -> list[str]:
        found = await list_resources(shop.trail, by, **filters)
        listed = await catalog.list_resources(by=by, **{"limit": 50, **filters})
        assert [each.route for each in listed] == [each.context["uri"] for each in found]
        return [each.title for each in found]

    assert await names() == ["x", "b", "c", "b", "a"]
    assert await names(domain="first") == ["c", "b", "a"]
    assert await names(resource_type="column") == ["b"]
    assert await names(resource_type="a type with spaces") == ["c"]
    assert await names(path_segment="facts") == ["b", "a"]
    assert await names(path_segment="%C3%BCber") == ["c"]
    assert await names(source_id="memory:2") == ["x", "b"]
    assert await names(is_unrestricted=True) == ["c", "b", "a"]
    assert await names(is_unrestricted=False) == ["x", "b"]
    assert await names(scope="admin") == ["x", "b"]
    assert await names(scope="adm") == []
    assert await names(domain="first", sort="quality_score") == ["b", "c", "a"]
    assert await names(domain="first", sort="quality_score", ascending=True) == ["a", "c", "b"]
    assert await names(sort="indexed_at", limit=2) == ["b", "x"]
    assert await names(limit=2) == ["x", "b"]
    with pytest.raises(InvalidInput, match="limit"):
        await names(limit=0)
    with pytest.raises(InvalidInput, match="sort"):
        await names(sort="name")


async def test_sorting_holds_over_many_pages(shop: Shop) -> None:
    nodes = [
        ResourceNode(id=str(n), name=str(n), path=str(n), content="", quality=(n * 37) % 101) for n in range(1_500)
    ]
    await shop.refresh(a_domain(MemorySource({"a": "x"}), formats=[FixedFormat(nodes)]))
    found = await list_resources(shop.trail, shop.me, sort="quality_score", limit=40)
    wanted = sorted(nodes, key=lambda node: (-min(node.quality, 100), f"docs://resources/{node.path}"))[:40]
    assert [each.title for each in found] == [node.name for node in wanted]
