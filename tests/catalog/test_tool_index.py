"""Tools on the trail: exactly those of a domain, each written once, and repaired after interruptions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.tool_index import TOOL_SCHEMA, draft_of, drop_domain, index_domain, keeper_of
from clew.trail import open_trail
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.tools.fraud import ME, SUPPORT, WAREHOUSE, some_tool

ALL = Selector(schema_name=TOOL_SCHEMA)


async def routes(trail: Trail, *scopes: str) -> list[str]:
    by = Principal(owner_id="acme", agent_id="ann", scopes=frozenset(scopes))
    return sorted(each.context["route"] for each in (await trail.records.list(ALL, by=by, limit=1_000)).items)


@pytest.mark.req("RCR-43")
@pytest.mark.req("O13")
async def test_a_tool_is_found_by_the_very_next_search_and_shows_no_code(trail: Trail) -> None:
    assert await index_domain(trail, WAREHOUSE, by=ME) == 3
    (hit, *_) = (await trail.index.search(SearchRequest(text="fincrime", selector=ALL), by=ME)).hits
    view = await trail.records.read(hit.breadcrumb.id, by=ME)
    assert set(hit.breadcrumb.context) == {"route", "domain", "name", "title", "description", "arguments"}
    assert "File a report" in str(view)
    await index_domain(trail, SUPPORT, by=ME)
    (hit, *_) = (await trail.index.search(SearchRequest(text="tickets", selector=ALL), by=ME)).hits
    assert hit.breadcrumb.context["route"] == "support://tools/tickets"


async def test_unchanged_records_are_not_written_again(trail: Trail) -> None:
    await index_domain(trail, WAREHOUSE, by=ME)
    head = await trail.log.head()
    assert await index_domain(trail, WAREHOUSE, by=ME) == 0
    assert await trail.log.head() == head


async def test_changed_tools_are_updated_and_gone_ones_removed(trail: Trail) -> None:
    domain = Domain(name="d", description="D", tools=[some_tool("a"), some_tool("b"), some_tool("c")])
    await index_domain(trail, domain, by=ME)
    changed = [some_tool("a"), some_tool("b", "Does another thing.", scopes=["s"]), some_tool("e")]
    assert await index_domain(trail, msgspec.structs.replace(domain, tools=changed), by=ME) == 2
    assert await routes(trail) == ["d://tools/a", "d://tools/e"]
    assert await routes(trail, "s") == ["d://tools/a", "d://tools/b", "d://tools/e"]
    plain = msgspec.structs.replace(domain, tools=[some_tool("b")])
    await index_domain(trail, plain, by=ME)
    assert await routes(trail) == ["d://tools/b"], "the scopes of earlier records are known"


async def test_a_domain_can_be_dropped_and_come_back(trail: Trail) -> None:
    for _ in range(2):
        await index_domain(trail, SUPPORT, by=ME)
        assert await routes(trail, "vip") == ["support://tools/hidden/vip-care", "support://tools/tickets"]
        await drop_domain(trail, "support", by=ME)
        assert await routes(trail, "vip") == []
    await drop_domain(trail, "support", by=ME)


async def test_only_entry_points_of_a_foreign_server_are_written(trail: Trail) -> None:
    await index_domain(trail, msgspec.structs.replace(WAREHOUSE, is_foreign=True), by=ME)
    assert await routes(trail) == ["warehouse://tools/analyst"]


async def test_two_processes_may_index_one_domain_at_the_same_time(tmp_path: Path) -> None:
    trails = [await open_trail(f"sqlite://{tmp_path}/trail.db") for _ in range(3)]
    domain = Domain(name="d", description="D", tools=[some_tool(f"t-{at}") for at in range(50)])
    try:
        await asyncio.gather(*(index_domain(each, domain, by=ME) for each in trails))
        assert len(await routes(trails[0])) == 50
        changed = msgspec.structs.replace(domain, tools=[some_tool(f"t-{at}", "Changed.") for at in range(40)])
        await asyncio.gather(*(index_domain(each, changed, by=ME) for each in trails))
        assert len(await routes(trails[0])) == 40
    finally:
        for each in trails:
            await each.close()


async def test_leftovers_of_an_interruption_are_repaired(trail: Trail) -> None:
    """The first indexing ends after its first writes; then the domain asks for other scopes."""
    domain = Domain(name="d", description="D", tools=[some_tool("a"), some_tool("b")], scopes=frozenset({"old"}))
    started = asyncio.Event()

    class Breaking:
        """Records that fail once tools are to be marked as written."""

        def __init__(self) -> None:
            self.records = self

        def __getattr__(self, name: str) -> object:
            return getattr(trail.records, name)

        async def update(self, *arguments: object, **more: object) -> None:
            started.set()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await index_domain(Breaking(), domain, by=ME)  # type: ignore[arg-type]  # the real records behind one fault
    assert started.is_set()
    assert await routes(trail, "old") == ["d://tools/a", "d://tools/b"]
    await index_domain(trail, msgspec.structs.replace(domain, scopes=frozenset({"new"})), by=ME)
    assert await routes(trail, "new") == ["d://tools/a", "d://tools/b"]
    assert await routes(trail, "old") == []


@pytest.mark.slow
async def test_thousands_of_changed_tools_are_written(trail: Trail) -> None:
    def domain(said: str) -> Domain:
        return Domain(name="d", description="D", tools=[some_tool(f"t-{at}", f"{said} {at}.") for at in range(1_500)])

    assert await index_domain(trail, domain("Does"), by=ME) == 1_500
    assert await index_domain(trail, domain("Did"), by=ME) == 1_500


async def test_the_keeper_holds_the_scopes_of_all_domains_present_and_past(trail: Trail) -> None:
    await index_domain(trail, SUPPORT, by=ME)
    closed = msgspec.structs.replace(WAREHOUSE, scopes=frozenset({"staff"}))
    assert (await keeper_of(trail, [closed], by=ME)).scopes == {"vip", "staff"}


def test_a_record_of_a_tool_belongs_to_its_owner(stranger: Principal) -> None:
    (tool, *_) = WAREHOUSE.tools
    assert draft_of(WAREHOUSE, tool, ME).id == draft_of(WAREHOUSE, tool, ME).id
    assert draft_of(WAREHOUSE, tool, ME).id != draft_of(WAREHOUSE, tool, stranger).id
