"""The three operations on all sources, and their states."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.document_nodes import SCHEMA, source_tag
from clew.catalog.indexing.lifecycle import AT_ONCE, Lifecycle
from clew.catalog.indexing.resource_queries import list_resources
from clew.catalog.indexing.source_ledger import keeper
from clew.clock import ManualClock
from clew.errors import NotFound, SourceError
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.catalog.sample_domains import MemorySource, a_domain


class Start:
    """Starts lifecycles over one trail, as processes do one after the other."""

    def __init__(self, trail: Trail, me: Principal, clock: ManualClock) -> None:
        self.trail, self.me, self.clock = trail, me, clock

    def __call__(self, *domains: Domain, **more: Any) -> Lifecycle:
        return Lifecycle(self.trail, domains, by=self.me, clock=self.clock, **more)

    async def contents(self) -> dict[str, str]:
        found = await list_resources(self.trail, self.me, limit=1_000)
        return {each.context["uri"]: each.context["content"] for each in found}

    async def indexed_at(self, source_id: str) -> set[int]:
        found = await list_resources(self.trail, self.me, source_id=source_id, limit=1_000)
        return {each.context["indexed_at"] for each in found}


@pytest.fixture
def start(trail: Trail, me: Principal, clock: ManualClock) -> Start:
    return Start(trail, me, clock)


@pytest.mark.req("ERN-23")
@pytest.mark.req("ERN-24")
async def test_a_restart_asks_nothing_of_fresh_sources_and_refreshes_stale_ones(start: Start) -> None:
    slow = MemorySource({"a": "x"}, "memory:slow")
    quick = MemorySource({"b": "y"}, "memory:quick")
    domains = a_domain(slow), a_domain(quick, name="news", cache_ttl_ms=1_000)
    await start(*domains).restart()
    start.clock.advance(seconds=2)
    slow.listed, slow.fetched, quick.texts["b"] = 0, [], "z"
    reports = await start(*domains).restart()
    assert [(report.source_id, report.outcome) for report in reports] == [
        ("memory:slow", "fresh"),
        ("memory:quick", "refreshed"),
    ]
    assert reports[0].reason == "its oldest document is 2 s old"
    assert (slow.listed, slow.fetched) == (0, [])
    assert (await start.contents())["news://resources/b"] == "z"


@pytest.mark.req("ERN-23")
async def test_a_local_source_is_looked_at_again_at_every_restart(start: Start) -> None:
    source = MemorySource({"a": "x"}, is_local=True)
    await start(a_domain(source)).restart()
    source.texts["a"] = "touched"
    await start(a_domain(source)).restart()
    assert await start.contents() == {"docs://resources/a": "touched"}


@pytest.mark.req("ERN-24")
async def test_a_failing_source_keeps_its_documents_searchable_and_stops_no_other(start: Start) -> None:
    bad, good = MemorySource({"a": "quokka"}, "memory:bad"), MemorySource({"b": "old"}, "memory:good")
    lifecycle = start(a_domain(bad, good))
    await lifecycle.restart()
    bad.list_failure, good.texts["b"] = SourceError("memory", "is down"), "new"
    start.clock.advance(days=1)
    reports = await lifecycle.restart()
    assert [report.outcome for report in reports] == ["failed", "refreshed"]
    assert reports[0].error == "memory: is down"
    assert await start.contents() == {"docs://resources/a": "quokka", "docs://resources/b": "new"}
    request = SearchRequest(text="quokka", selector=Selector(schema_name=SCHEMA))
    assert len((await start.trail.index.search(request, by=start.me)).hits) == 1
    state, _ = await lifecycle.sources()
    assert (state.is_fresh, state.documents, state.error) == (False, 1, "memory: is down")


async def test_code_that_breaks_in_a_source_stops_no_other(start: Start) -> None:
    class Broken(MemorySource):
        @property
        def is_local(self) -> bool:
            raise ZeroDivisionError

        @is_local.setter
        def is_local(self, value: bool) -> None:
            pass

    good = MemorySource({"b": "y"}, "memory:good")
    await start(a_domain(MemorySource({"a": "x"}, "memory:broken"))).restart()
    reports = await start(a_domain(Broken({"a": "x"}, "memory:broken"), good)).restart()
    assert [(report.outcome, report.error) for report in reports] == [
        ("failed", "unexpected ZeroDivisionError"),
        ("refreshed", ""),
    ]


@pytest.mark.req("ERN-24")
async def test_wiping_fetches_and_writes_everything_again(start: Start) -> None:
    source = MemorySource({"a": "x = 1", "b": "y"})
    lifecycle = start(a_domain(source))
    await lifecycle.restart()
    before = await start.indexed_at("memory:one")
    source.fetched.clear()
    start.clock.advance(seconds=5)
    (report,) = await lifecycle.wipe_and_rebuild()
    assert sorted(source.fetched) == ["a", "b"]
    assert (report.documents, report.nodes, report.nodes_written) == (2, 3, 3)
    assert await start.indexed_at("memory:one") == {before.pop() + 5_000}


@pytest.mark.req("ERN-24")
async def test_wiping_drops_nothing_that_could_not_be_fetched(start: Start) -> None:
    down, half = MemorySource({"a": "x"}, "memory:down"), MemorySource({"b": "y", "c": "z"}, "memory:half")
    lifecycle = start(a_domain(down, half))
    await lifecycle.restart()
    down.list_failure = SourceError("memory", "is down")
    half.failures["b"], half.texts["c"] = SourceError("memory", "answers 500"), "new"
    reports = await lifecycle.wipe_and_rebuild()
    assert [report.outcome for report in reports] == ["failed", "refreshed"]
    assert [each.document for each in reports[1].skipped] == ["b"]
    assert set((await start.contents()).values()) == {"x", "y", "new"}


async def test_wiping_removes_resources_that_no_book_knows_and_brings_back_lost_ones(start: Start) -> None:
    source = MemorySource({"a": "x", "b": "y"})
    lifecycle = start(a_domain(source))
    await lifecycle.restart()
    stray, lost = await list_resources(start.trail, start.me)
    await start.trail.records.delete(lost.id, by=start.me)
    context = stray.context | {"uri": "docs://resources/stray"}
    draft = Draft(title="stray", schema_name=SCHEMA, context=context, tags=stray.tags)
    await start.trail.records.create(draft, by=start.me)
    await lifecycle.wipe_and_rebuild()
    assert await start.contents() == {"docs://resources/a": "x", "docs://resources/b": "y"}


@pytest.mark.req("ERN-24")
async def test_refreshing_one_source_leaves_the_others_alone(start: Start) -> None:
    one, two = MemorySource({"a": "x"}, "memory:1"), MemorySource({"b": "y"}, "memory:2")
    lifecycle = start(a_domain(one, two))
    await lifecycle.restart()
    before, states = await start.indexed_at("memory:2"), await lifecycle.sources()
    one.texts["a"] = two.texts["b"] = "new"
    start.clock.advance(seconds=5)
    (report,) = await lifecycle.refresh_source("memory:1")
    assert (report.source_id, report.changed) == ("memory:1", 1)
    assert await start.contents() == {"docs://resources/a": "new", "docs://resources/b": "y"}
    assert await start.indexed_at("memory:2") == before
    assert (two.listed, (await lifecycle.sources())[1]) == (1, states[1])


async def test_a_source_of_two_domains_is_refreshed_in_both(start: Start) -> None:
    source = MemorySource({"a": "x"})
    lifecycle = start(a_domain(source, name="one"), a_domain(source, name="two"))
    reports = await lifecycle.refresh_source("memory:one")
    assert [report.domain for report in reports] == ["one", "two"]
    assert await start.contents() == {"one://resources/a": "x", "two://resources/a": "x"}


async def test_an_unknown_source_is_refused_with_the_known_ones(start: Start) -> None:
    with pytest.raises(NotFound, match=r"no source 'x'\. Sources are memory:1, memory:2"):
        await start(a_domain(MemorySource({}, "memory:2"), MemorySource({}, "memory:1"))).refresh_source("x")
    with pytest.raises(NotFound, match="Sources are not configured"):
        await start().refresh_source("x")


async def test_force_reaches_a_source_that_is_suddenly_empty(start: Start) -> None:
    source = MemorySource({str(number): "x" for number in range(20)})
    lifecycle = start(a_domain(source))
    await lifecycle.restart()
    source.texts.clear()
    assert [report.outcome for report in await lifecycle.refresh_source(source.id)] == ["failed"]
    assert [report.removed for report in await lifecycle.refresh_source(source.id, force=True)] == [20]


async def test_a_source_that_is_no_longer_configured_is_dropped_and_reported(start: Start) -> None:
    secret = a_domain(MemorySource({"a": "x = 1"}), name="gone", scopes=frozenset({"admin"}))
    kept = a_domain(MemorySource({"b": "y"}))
    await start(secret, kept).restart()
    *_, report = await start(kept).restart()
    assert (report.domain, report.outcome, report.removed, report.nodes_removed) == ("gone", "dropped", 1, 2)
    assert report.reason == "the domain gone is no longer configured with it"
    left = await start.trail.records.list(Selector(any_tags=["domain:gone"]), by=keeper(start.me, ["admin"]))
    assert left.items == ()
    assert [report.outcome for report in await start(kept).restart()] == ["fresh"]


async def test_a_source_that_moved_takes_over_before_the_old_one_is_dropped(start: Start) -> None:
    old, new = MemorySource({"a": "x"}, "memory:old"), MemorySource({"a": "x"}, "memory:new")
    await start(a_domain(old)).restart()
    (before,) = await list_resources(start.trail, start.me)
    await start(a_domain(new)).restart()
    (after,) = await list_resources(start.trail, start.me)
    assert (after.id, after.version, after.context["source_id"]) == (before.id, 2, "memory:new")
    assert source_tag("memory:new") in after.tags


async def test_sources_tell_what_they_hold(start: Start) -> None:
    source = MemorySource({"a": "x = 1", "b": "nonsense"})
    lifecycle = start(a_domain(source))
    (state,) = await lifecycle.sources()
    assert (state.is_fresh, state.reason, state.documents) == (False, "it was never indexed", 0)
    await lifecycle.restart()
    (state,) = await lifecycle.sources()
    now = int(start.clock.now().timestamp() * 1_000)
    assert (state.is_fresh, state.documents, state.nodes, state.failed, state.oldest) == (True, 2, 2, 1, now)


async def test_progress_is_one_bar_over_all_sources(start: Start) -> None:
    told: list[tuple[int, int]] = []
    one, two = MemorySource({"a": "x", "b": "y"}, "memory:1"), MemorySource({"c": "z"}, "memory:2")
    lifecycle = start(a_domain(one, two), report=lambda done, total, what: told.append((done, total)))
    await lifecycle.restart()
    assert told[-1] == (3, 3)
    assert [done for done, _ in told] == [1, 2, 3]


async def test_many_sources_are_refreshed_a_few_at_a_time(start: Start) -> None:
    sources = [MemorySource({f"d{number}": "x"}, f"memory:{number}") for number in range(10)]
    gate = asyncio.Event()
    for source in sources:
        source.gate = gate
    running = asyncio.create_task(start(a_domain(*sources)).restart())
    await asyncio.gather(*(source.waiting.wait() for source in sources[:AT_ONCE]))
    assert sum(source.listed for source in sources) == AT_ONCE
    gate.set()
    assert [report.outcome for report in await running] == ["refreshed"] * 10


async def test_owners_do_not_touch_each_other(start: Start, stranger: Principal) -> None:
    domain = a_domain(MemorySource({"a": "x"}))
    await start(domain).restart()
    theirs = Start(start.trail, stranger, start.clock)
    await theirs(domain).restart()
    await theirs().restart()
    assert await theirs.contents() == {}
    assert await start.contents() == {"docs://resources/a": "x"}


async def test_the_index_is_still_there_after_the_trail_was_closed(start: Start, tmp_path: Any) -> None:
    source = MemorySource({"a": "x"})
    await start(a_domain(source)).restart()
    await start.trail.close()
    start.trail = await open_trail(f"sqlite://{tmp_path}/trail.db", start.clock)
    try:
        assert [report.outcome for report in await start(a_domain(source)).restart()] == ["fresh"]
        assert await start.contents() == {"docs://resources/a": "x"}
    finally:
        await start.trail.close()
