"""Refreshing one source: incremental, fetch before replace, and a report of every failure."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.catalog.indexing.resource_queries import find_resource
from clew.catalog.indexing.source_ledger import DOCUMENT_SCHEMA
from clew.catalog.resource import ResourceNode, Skipped
from clew.errors import SourceError
from tests.catalog.pipeline.conftest import Shop, many
from tests.catalog.sample_domains import FixedFormat, MemorySource, OutlineFormat, a_domain


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
async def test_a_document_that_fails_keeps_its_nodes_and_is_reported(shop: Shop) -> None:
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


async def test_errors_of_foreign_code_are_reported_without_their_text(shop: Shop) -> None:
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


async def test_the_first_of_two_documents_with_one_address_is_used_until_it_is_removed(shop: Shop) -> None:
    source = MemorySource({"a b": "first", "a%20b": "second"})
    domain = a_domain(source, formats=[SameAddress()])
    report = await shop.refresh(domain)
    assert await shop.contents() == {"here": "first"}
    assert report.skipped == (
        Skipped(document="a%20b", reason="docs://resources/here belongs to 'a b', which came first"),
    )
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


async def test_a_document_that_is_listed_twice_or_has_no_real_id_is_reported(shop: Shop) -> None:
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
