"""Refreshing one source: incremental, fetch-then-swap, and what is told of everything that goes wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing import SCHEMA
from clew.catalog.ledger import DOCUMENT_SCHEMA, SOURCE_SCHEMA, keeper
from clew.catalog.pipeline import Policy, Report, run_pipeline
from clew.catalog.resource import Pipeline, ResourceNode, Skipped
from clew.catalog.shelf import find_resource, list_resources, select_resources
from clew.clock import ManualClock
from clew.errors import AccessDenied, InvalidInput, SourceError
from clew.trail.bootstrap import bootstrap
from clew.trail.breadcrumb import Breadcrumb, Change
from clew.trail.query import SearchRequest
from clew.trail.selector import Selector
from clew.trail.store import Trail
from tests.catalog.making import FixedFormat, MemorySource, OutlineFormat, a_domain


class Shop:
    """A trail, a caller and a clock: what every refresh needs."""

    def __init__(self, trail: Trail, me: Principal, clock: ManualClock) -> None:
        self.trail, self.me, self.clock = trail, me, clock

    async def refresh(self, domain: Domain, number: int = 0, **policy: Any) -> Report:
        pipeline = domain.extractors[number]
        return await run_pipeline(self.trail, domain, pipeline, by=self.me, clock=self.clock, policy=Policy(**policy))

    async def contents(self, *scopes: str) -> dict[str, str]:
        """From the path of each resource to its content."""
        by = msgspec.structs.replace(self.me, scopes=frozenset(scopes))
        found = await list_resources(self.trail, by, limit=1_000)
        return {each.context["path"]: each.context["content"] for each in found}

    async def writes(self, schema_name: str = SCHEMA) -> int:
        """How often a record of this schema was written or removed."""
        events, _ = await self.trail.log.read(
            0, by=keeper(self.me), selector=Selector(schema_name=schema_name), limit=10_000
        )
        return len(events)


@pytest.fixture
def shop(trail: Trail, me: Principal, clock: ManualClock) -> Shop:
    return Shop(trail, me, clock)


def many(count: int) -> dict[str, str]:
    return {f"d{number}": f"text {number}" for number in range(count)}


@pytest.mark.req("ERN-16")
@pytest.mark.req("O15")
async def test_documents_become_resources_below_the_base_path(shop: Shop) -> None:
    source = MemorySource({"intro": "hello = world\nbye = moon"})
    report = await shop.refresh(a_domain(source, base_path="guides/new"))
    assert await shop.contents() == {
        "guides/new/intro": "hello = world\nbye = moon",
        "guides/new/intro/hello": "world",
        "guides/new/intro/bye": "moon",
    }
    found = await find_resource(shop.trail, "docs://resources/guides/new/intro/bye", by=shop.me)
    assert found is not None
    assert found.title == "bye"
    assert (report.outcome, report.documents, report.nodes, report.nodes_written) == ("refreshed", 1, 3, 3)


async def test_nothing_is_found_where_nothing_is(shop: Shop, stranger: Principal) -> None:
    await shop.refresh(a_domain(MemorySource({"intro": "x"})))
    assert await find_resource(shop.trail, "docs://resources/else", by=shop.me) is None
    assert await find_resource(shop.trail, "docs://resources/intro", by=stranger) is None


async def test_unchanged_documents_are_neither_fetched_nor_written(shop: Shop) -> None:
    source = MemorySource(many(5))
    await shop.refresh(a_domain(source))
    source.fetched.clear()
    before = await shop.writes(), await shop.writes(DOCUMENT_SCHEMA)
    report = await shop.refresh(a_domain(source))
    assert source.fetched == []
    assert (await shop.writes(), await shop.writes(DOCUMENT_SCHEMA)) == before
    assert (report.unchanged, report.changed, report.nodes) == (5, 0, 5)


async def test_without_versions_documents_are_fetched_but_not_written_again(shop: Shop) -> None:
    source = MemorySource(many(5), has_versions=False)
    await shop.refresh(a_domain(source))
    before = await shop.writes(), await shop.writes(DOCUMENT_SCHEMA)
    report = await shop.refresh(a_domain(source))
    assert len(source.fetched) == 10
    assert (await shop.writes(), await shop.writes(DOCUMENT_SCHEMA)) == before
    assert (report.unchanged, report.changed) == (5, 0)


@pytest.mark.req("O15")
async def test_only_the_nodes_that_differ_are_written(shop: Shop) -> None:
    source = MemorySource({"a": "one = 1\ntwo = 2\nthree = 3", "b": "x"})
    await shop.refresh(a_domain(source))
    source.fetched.clear()
    source.texts["a"] = "one = 1\ntwo = II\nfour = 4"
    report = await shop.refresh(a_domain(source))
    assert source.fetched == ["a"]
    assert (report.changed, report.nodes_written, report.nodes_removed) == (1, 3, 1)
    assert await shop.contents() == {"a": source.texts["a"], "a/one": "1", "a/two": "II", "a/four": "4", "b": "x"}
    untouched = await find_resource(shop.trail, "docs://resources/a/one", by=shop.me)
    assert untouched is not None
    assert untouched.version == 1


async def test_documents_that_are_gone_are_removed(shop: Shop) -> None:
    source = MemorySource({"a": "x = 1", "b": "y"})
    await shop.refresh(a_domain(source))
    del source.texts["a"]
    report = await shop.refresh(a_domain(source))
    assert await shop.contents() == {"b": "y"}
    assert (report.removed, report.nodes_removed, report.documents) == (1, 2, 1)


@pytest.mark.req("ERN-24")
@pytest.mark.req("O15")
async def test_a_document_that_fails_keeps_its_nodes_and_is_told(shop: Shop) -> None:
    source = MemorySource({"a": "old", "b": "old", "c": "old"})
    await shop.refresh(a_domain(source))
    source.texts |= {"a": "new", "b": "new", "c": "nonsense"}
    source.failures["b"] = SourceError("memory", "answers 500", hint="Try later")
    report = await shop.refresh(a_domain(source))
    assert await shop.contents() == {"a": "new", "b": "old", "c": "old"}
    assert report.skipped == (
        Skipped(document="b", reason="memory: answers 500. Try later"),
        Skipped(document="c", reason="c: makes no sense"),
    )
    assert (report.outcome, report.failed, report.changed) == ("refreshed", 2, 1)
    source.failures.clear()
    source.texts["c"] = "old"
    await shop.refresh(a_domain(source))
    assert await shop.contents() == {"a": "new", "b": "new", "c": "old"}


async def test_the_errors_of_foreign_code_are_told_without_their_words(shop: Shop) -> None:
    source = MemorySource({"a": "x", "b": "y"})
    source.failures["a"] = ValueError("token=hunter2")
    report = await shop.refresh(a_domain(source))
    assert report.skipped == (Skipped(document="a", reason="unexpected ValueError"),)
    source.list_failure = RuntimeError("token=hunter2")
    report = await shop.refresh(a_domain(source))
    assert (report.outcome, report.error) == ("failed", "memory:one: unexpected RuntimeError")
    assert await shop.contents() == {"b": "y"}


@pytest.mark.req("ERN-24")
async def test_a_list_that_fails_leaves_everything(shop: Shop) -> None:
    source = MemorySource(many(3))
    await shop.refresh(a_domain(source))
    source.list_failure = SourceError("memory", "is down")
    report = await shop.refresh(a_domain(source))
    assert (report.outcome, report.error) == ("failed", "memory: is down")
    assert len(await shop.contents()) == 3
    source.list_failure, source.fetched = None, []
    await shop.refresh(a_domain(source))
    assert source.fetched == [], "the books were lost"


async def test_a_source_that_is_suddenly_empty_is_not_believed_unless_forced(shop: Shop) -> None:
    source = MemorySource(many(10))
    await shop.refresh(a_domain(source))
    source.texts.clear()
    report = await shop.refresh(a_domain(source))
    assert report.outcome == "failed"
    assert report.error == (
        "memory:one: lists no documents, and had 10; they are kept. If it is really empty now, refresh it with force"
    )
    assert len(await shop.contents()) == 10
    report = await shop.refresh(a_domain(source), force=True)
    assert (report.outcome, report.removed) == ("refreshed", 10)
    assert await shop.contents() == {}


async def test_a_source_that_had_few_documents_may_become_empty(shop: Shop) -> None:
    source = MemorySource(many(2))
    await shop.refresh(a_domain(source))
    source.texts.clear()
    assert (await shop.refresh(a_domain(source))).outcome == "refreshed"
    assert await shop.contents() == {}


async def test_types_that_no_format_reads_are_counted_and_not_fetched(shop: Shop) -> None:
    source = MemorySource({"a": "x", "p": "png", "q": "png"})
    source.types |= {"p": "image/png", "q": "image/png"}
    source.skipped.append(Skipped(document="big", reason="is over 5 MB"))
    report = await shop.refresh(a_domain(source))
    assert source.fetched == ["a"]
    assert report.unhandled == {"image/png": 2}
    assert report.skipped == (Skipped(document="big", reason="is over 5 MB"),)


async def test_the_next_format_is_tried_where_one_cannot_read_it(shop: Shop) -> None:
    node = ResourceNode(id="n", name="n", path="n", content="as it is")
    domain = a_domain(MemorySource({"a": "nonsense"}), formats=[OutlineFormat(), FixedFormat([node])])
    await shop.refresh(domain)
    assert await shop.contents() == {"n": "as it is"}


async def test_of_two_documents_with_one_address_the_first_counts_until_it_goes(shop: Shop) -> None:
    source = MemorySource({"a b": "first", "a%20b": "second"})
    domain = a_domain(source, formats=[SameAddress()])
    report = await shop.refresh(domain)
    assert await shop.contents() == {"here": "first"}
    assert report.skipped == (Skipped(document="a%20b", reason="docs://resources/here is held by 'a b', which counts"),)
    assert (await shop.refresh(domain)).nodes_written == 0
    del source.texts["a b"]
    await shop.refresh(domain)
    assert await shop.contents() == {"here": "second"}


class SameAddress(OutlineFormat):
    """Every document stands at one address."""

    def parse(self, content: Any, base_path: str) -> list[ResourceNode]:
        return [ResourceNode(id=content.id, name=content.id, path="here", content=content.text)]


async def test_a_renamed_document_hands_its_address_on_without_a_gap(shop: Shop) -> None:
    source = MemorySource({"old": "text"})
    domain = a_domain(source, formats=[SameAddress()])
    await shop.refresh(domain)
    source.texts = {"new": "text, edited"}
    report = await shop.refresh(domain)
    assert await shop.contents() == {"here": "text, edited"}
    assert (report.removed, report.nodes_removed) == (1, 0)


async def test_two_sources_with_one_address_do_not_fight(shop: Shop) -> None:
    first, second = MemorySource({"a": "first"}, "memory:1"), MemorySource({"a": "second", "b": "other"}, "memory:2")
    domain = a_domain(first, second)
    await shop.refresh(domain, 0)
    report = await shop.refresh(domain, 1)
    assert await shop.contents() == {"a": "first", "b": "other"}
    assert "docs://resources/a is taken" in report.skipped[0].reason
    await shop.refresh(domain, 0)
    assert await shop.contents() == {"a": "first", "b": "other"}
    del first.texts["a"]
    await shop.refresh(domain, 0)
    await shop.refresh(domain, 1)
    assert await shop.contents() == {"a": "second", "b": "other"}


async def test_a_document_that_is_listed_twice_or_has_no_real_id_is_told(shop: Shop) -> None:
    class Twice(MemorySource):
        async def list_documents(self) -> Any:
            listing = await super().list_documents()
            return msgspec.structs.replace(listing, documents=[*listing.documents, *listing.documents])

    report = await shop.refresh(a_domain(Twice({"a": "x", "\ud800": "y"})))
    assert await shop.contents() == {"a": "x"}
    assert [each.reason for each in report.skipped] == [
        "its id is not Unicode text",
        "it is listed twice; the first counts",
        "its id is not Unicode text",
    ]


async def test_a_changed_base_path_moves_all_resources(shop: Shop) -> None:
    source = MemorySource({"a": "x"})
    await shop.refresh(a_domain(source, base_path="old"))
    await shop.refresh(a_domain(source, base_path="new"))
    assert await shop.contents() == {"new/a": "x"}


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
async def test_changed_scopes_hold_at_once_even_when_the_source_is_down(shop: Shop, is_down: bool) -> None:
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
async def test_a_caller_with_one_scope_never_sees_what_needs_two_and_still_gets_its_limit(shop: Shop) -> None:
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

    async def names(**filters: Any) -> list[str]:
        return [each.title for each in await list_resources(shop.trail, by, **filters)]

    assert await names() == ["a", "b", "c", "b", "x"]
    assert await names(domain="first") == ["a", "b", "c"]
    assert await names(resource_type="column") == ["b"]
    assert await names(resource_type="a type with spaces") == ["c"]
    assert await names(path_segment="facts") == ["a", "b"]
    assert await names(path_segment="%C3%BCber") == ["c"]
    assert await names(source_id="memory:2") == ["b", "x"]
    assert await names(is_unrestricted=True) == ["a", "b", "c"]
    assert await names(is_unrestricted=False) == ["b", "x"]
    assert await names(scope="admin") == ["b", "x"]
    assert await names(scope="adm") == []
    assert await names(domain="first", sort="quality_score") == ["b", "c", "a"]
    assert await names(domain="first", sort="quality_score", ascending=True) == ["a", "c", "b"]
    assert await names(sort="indexed_at", limit=2) == ["b", "x"]
    assert await names(limit=2) == ["a", "b"]
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


async def test_a_cyclic_tree_and_a_huge_body_are_told_and_stop_nothing(shop: Shop) -> None:
    children: list[ResourceNode] = []
    top = ResourceNode(id="top", name="top", path="top", content="", children=children)
    children.append(top)
    source = MemorySource({"cycle": "x"})
    report = await shop.refresh(a_domain(source, formats=[FixedFormat([top])]))
    assert "second time" in report.skipped[0].reason
    source.texts = {"huge": "x" * 20_000_001, "small": "x"}
    report = await shop.refresh(a_domain(source))
    assert "20,000,001 bytes is over the limit" in report.skipped[0].reason
    assert await shop.contents() == {"small": "x"}


async def test_progress_is_told_document_by_document(shop: Shop) -> None:
    source, told = MemorySource(many(250)), list[tuple[int, int]]()
    domain = a_domain(source)
    await run_pipeline(
        shop.trail,
        domain,
        domain.extractors[0],
        by=shop.me,
        clock=shop.clock,
        report=lambda done, total, what: told.append((done, total)),
    )
    assert told == [(number, 250) for number in range(1, 251)]


async def test_the_books_are_hidden_from_everybody_else(shop: Shop) -> None:
    await shop.refresh(a_domain(MemorySource({"secret plans": "x"}), scopes=frozenset({"admin"})))
    books = Selector(schema_names=[SOURCE_SCHEMA, DOCUMENT_SCHEMA])
    assert (await shop.trail.records.list(books, by=shop.me)).items == ()
    kept = (await shop.trail.records.list(books, by=keeper(shop.me))).items
    assert {each.schema_name for each in kept} == {SOURCE_SCHEMA, DOCUMENT_SCHEMA}


async def test_fetches_are_bounded(shop: Shop) -> None:
    source = MemorySource(many(30))
    source.gate = asyncio.Event()
    running = asyncio.create_task(shop.refresh(a_domain(source)))
    while len(source.fetched) < 8:
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(source.fetched) == 8
    source.gate.set()
    assert (await running).documents == 30


async def test_a_second_refresh_waits_for_the_first(shop: Shop) -> None:
    source = MemorySource(many(3))
    source.gate = asyncio.Event()
    first = asyncio.create_task(shop.refresh(a_domain(source)))
    await source.waiting.wait()
    second = asyncio.create_task(shop.refresh(a_domain(source)))
    await asyncio.sleep(0)
    source.gate.set()
    assert [(await first).changed, (await second).changed] == [3, 0]
    assert await shop.writes() == 3


async def test_a_second_refresh_without_patience_is_told(shop: Shop) -> None:
    source = MemorySource(many(3))
    source.gate = asyncio.Event()
    first = asyncio.create_task(shop.refresh(a_domain(source)))
    await source.waiting.wait()
    report = await shop.refresh(a_domain(source), patience_ms=0)
    assert (report.outcome, report.error) == (
        "failed",
        "memory:one: is being refreshed by somebody else. Wait for it to finish, then try again",
    )
    source.gate.set()
    assert (await first).outcome == "refreshed"


@pytest.mark.req("ERN-24")
async def test_a_cancelled_refresh_lets_go_and_the_next_completes_it(shop: Shop) -> None:
    source = MemorySource(many(150))
    await shop.refresh(a_domain(source))
    source.texts = {f"e{number}": "new" for number in range(150)}
    source.gate = asyncio.Event()
    running = asyncio.create_task(shop.refresh(a_domain(source)))
    await source.waiting.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(await shop.contents()) == 150, "the old was dropped before the new was there"
    source.gate = None
    await shop.refresh(a_domain(source), patience_ms=0)
    assert await shop.contents() == dict.fromkeys(source.texts, "new")


async def test_after_an_interruption_the_trail_is_compared_with_the_books(shop: Shop) -> None:
    source = MemorySource({"a": "one = 1", "b": "x", "c": "y"})
    domain = a_domain(source)
    await shop.refresh(domain)
    by = shop.me
    await shop.trail.records.delete((await the(shop, "a/one")).id, by=by)
    half_done = await the(shop, "b")
    await shop.trail.records.update(half_done.id, spoiled(half_done), expect=1, by=by)
    source.gate, source.texts["c"] = asyncio.Event(), "z"
    running = asyncio.create_task(shop.refresh(domain))
    await source.waiting.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    source.gate, source.fetched = None, []
    await shop.refresh(domain)
    assert sorted(source.fetched) == ["a", "b", "c"]
    assert await shop.contents() == {"a": "one = 1", "a/one": "1", "b": "x", "c": "z"}


async def the(shop: Shop, path: str) -> Breadcrumb:
    found = await find_resource(shop.trail, f"docs://resources/{path}", by=shop.me)
    assert found is not None
    return found


def spoiled(record: Breadcrumb) -> Change:
    return Change(context=record.context | {"content": "of a version that came and went"})


async def test_whoever_may_not_write_is_refused(shop: Shop) -> None:
    shop.me = msgspec.structs.replace(shop.me, roles=frozenset({"subscriber"}))
    with pytest.raises(AccessDenied):
        await shop.refresh(a_domain(MemorySource({"a": "x"})))
