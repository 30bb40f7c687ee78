"""Refreshes at work: progress, side by side, one after another, interrupted."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from clew.catalog.indexing.pipeline import run_pipeline
from clew.catalog.indexing.resource_queries import find_resource
from clew.catalog.indexing.source_ledger import DOCUMENT_SCHEMA, SOURCE_SCHEMA, keeper
from clew.catalog.resource import ResourceNode
from clew.errors import AccessDenied
from clew.trail.model.breadcrumb import Breadcrumb, Change
from clew.trail.model.selector import Selector
from tests.catalog.pipeline.conftest import Shop, many
from tests.catalog.sample_domains import FixedFormat, MemorySource, a_domain


async def test_a_cyclic_tree_and_a_huge_body_are_reported_and_the_refresh_continues(shop: Shop) -> None:
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


async def test_progress_is_reported_for_each_document(shop: Shop) -> None:
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


async def test_ledgers_are_hidden_from_callers(shop: Shop) -> None:
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


async def test_a_second_refresh_without_a_wait_is_refused(shop: Shop) -> None:
    source = MemorySource(many(3))
    source.gate = asyncio.Event()
    first = asyncio.create_task(shop.refresh(a_domain(source)))
    await source.waiting.wait()
    report = await shop.refresh(a_domain(source), patience_ms=0)
    assert (report.outcome, report.error) == (
        "failed",
        "memory:one: is being refreshed by another process. Wait for it to finish, then try again",
    )
    source.gate.set()
    assert (await first).outcome == "refreshed"


@pytest.mark.req("ERN-24")
async def test_a_cancelled_refresh_releases_its_lock_and_the_next_completes_it(shop: Shop) -> None:
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


async def test_after_an_interruption_the_trail_is_compared_with_the_ledger(shop: Shop) -> None:
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


async def test_a_caller_without_write_permission_is_refused(shop: Shop) -> None:
    shop.me = msgspec.structs.replace(shop.me, roles=frozenset({"subscriber"}))
    with pytest.raises(AccessDenied):
        await shop.refresh(a_domain(MemorySource({"a": "x"})))
