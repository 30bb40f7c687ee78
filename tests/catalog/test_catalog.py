"""The catalog as a whole: handles and strict mode, counts and instructions, adding and replacing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.catalog.catalog import Catalog
from clew.catalog.domain import Domain
from clew.catalog.operations.answers import Item
from clew.catalog.resource import Resource
from clew.clock import ManualClock, SystemClock
from clew.errors import AlreadyExists, HandleRefused, InvalidInput, NotFound
from clew.skills.exposure import LIFE
from clew.tools import GuidedContent, guide, tool
from clew.trail import open_trail
from tests.catalog.sample_domains import MemorySource, a_domain
from tests.tools.fraud import (
    ANALYST,
    FINCRIME,
    ME,
    SUPPORT,
    USER,
    VIP,
    WAREHOUSE,
    ask,
    catalog_at,
    codes_of,
    get,
    messages_of,
    resources_of,
    routes_of,
    some_tool,
)


def page(path: str, description: str = "", name: str = "") -> Resource:
    async def fetch(client: Any) -> str:
        return f"content of {path}"

    return Resource(path=path, name=name or path, description=description or f"About {path}", fetch=fetch)


@pytest.mark.req("BEY-01")
@pytest.mark.req("ERN-15")
async def test_a_strict_catalog_runs_only_what_was_shown(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE, SUPPORT, strict=True) as (catalog, _):
        everything = [ANALYST, USER, FINCRIME, "support://tools/tickets"]
        refused = await get(catalog, *everything, user_id="u1")
        assert codes_of(refused) == ["NOT_REVEALED"] * 4
        answer = await ask(catalog, "fraud investigation")
        handle = answer.handle
        first = await get(catalog, ANALYST, handle=handle)
        assert codes_of(first) == ["ok"]
        assert codes_of(await get(catalog, FINCRIME, handle=handle, user_id="u1")) == ["NOT_REVEALED"]
        assert codes_of(await get(catalog, USER, handle=handle, user_id="u1")) == ["ok"]
        assert codes_of(await get(catalog, FINCRIME, handle=handle, user_id="u1")) == ["ok"]
        assert codes_of(await get(catalog, FINCRIME, user_id="u1")) == ["NOT_REVEALED"], "without the handle"


@pytest.mark.req("BEY-01")
async def test_every_unrevealed_route_is_refused_and_the_named_question_reveals_it(tmp_path: Path) -> None:
    tools = [some_tool(f"group-{at % 7}/tool-{at}", f"Does thing {at}.") for at in range(200)]
    pages = [page(f"guide/page-{at}", f"Explains matter {at}", f"Page {at}") for at in range(30)]
    pages += [page(f"part-{at}/index", "Start here", "Welcome") for at in range(60)]
    domain = Domain(name="big", description="Many things", tools=tools, resources=pages)
    async with catalog_at(tmp_path, domain, WAREHOUSE, strict=True) as (catalog, _):
        routes = [
            *(f"big://tools/{each.name}" for each in tools),
            *(f"big://resources/{each.path}" for each in pages),
        ]
        for route in routes[::5]:
            refused = await get(catalog, route)
            assert codes_of(refused) == ["NOT_REVEALED"]
            (message,) = messages_of(refused)
            advice = message.partition('ask(query="')[2]
            query, _, rest = advice.partition('", domain="')
            answer = await ask(catalog, query, domain=rest.partition('")')[0])
            assert codes_of(await get(catalog, route, handle=answer.handle)) == ["ok"], f"{query} reveals {route}"


@pytest.mark.req("ERN-03")
async def test_a_catalog_in_python_finds_the_resources_of_its_domains_without_a_further_call(tmp_path: Path) -> None:
    trail = await open_trail(f"sqlite://{tmp_path}/trail.db")
    source = MemorySource({"rules": "refunds = up to 300 euros"})
    try:
        catalog = Catalog(trail, SystemClock(), owner=ME)
        await catalog.add(Domain(name="guide", description="Guide", resources=[page("walrus", "All about the walrus")]))
        assert resources_of(await ask(catalog, "the walrus")) == ["guide://resources/walrus"]
        await catalog.add(a_domain(source))
        assert "docs://resources/rules" in resources_of(await ask(catalog, "refunds rules"))
        assert codes_of(await get(catalog, "docs://resources/rules/refunds")) == ["ok"]
        listed = source.listed
        await ask(catalog, "refunds of euros")
        assert source.listed == listed, "a question does not read sources again"
    finally:
        await trail.close()


@pytest.mark.req("BEY-01")
async def test_the_refusal_of_a_hidden_tool_names_the_entry_point_whose_guidance_reveals_it(tmp_path: Path) -> None:
    others = [some_tool(f"other-{at}") for at in range(9)]
    domain = msgspec.structs.replace(WAREHOUSE, tools=[*others, *WAREHOUSE.tools])
    async with catalog_at(tmp_path, domain, strict=True) as (catalog, _):
        (message,) = messages_of(await get(catalog, USER, user_id="u1"))
        assert f'call ask(query="{ANALYST}", domain="warehouse"), then get {ANALYST} and follow' in message
        handle = (await ask(catalog, ANALYST, domain="warehouse")).handle
        handle = (await get(catalog, ANALYST, handle=handle)).handle
        assert codes_of(await get(catalog, USER, handle=handle, user_id="u1")) == ["ok"]


@pytest.mark.req("ERN-15")
async def test_only_the_guided_routes_join_the_set(tmp_path: Path) -> None:
    by = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"vip"}))
    async with catalog_at(tmp_path, WAREHOUSE, SUPPORT) as (catalog, _):
        first = await get(catalog, ANALYST, by=by)

        async def revealed() -> set[str]:
            routes = [ANALYST, USER, FINCRIME, VIP, "support://tools/tickets"]
            known = [await catalog.why(route, by=by, handle=first.handle) for route in routes]
            return {why.route for why in known if why.exposed is not None}

        assert await revealed() == {USER}
        await get(catalog, USER, by=by, handle=first.handle, user_id="u2")
        assert await revealed() == {USER}
        await get(catalog, USER, by=by, handle=first.handle, user_id="u1")
        assert await revealed() == {USER, FINCRIME}
        await get(catalog, USER, by=by, handle=first.handle, user_id="u3")
        assert await revealed() == {USER, FINCRIME, VIP}


@pytest.mark.req("BEY-01")
async def test_a_handle_survives_reopening_and_works_for_nobody_else(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE, strict=True, shared=True) as (catalog, _):
        answer = await ask(catalog, "fraud")
        await get(catalog, ANALYST, handle=answer.handle)
    async with catalog_at(tmp_path, WAREHOUSE, strict=True, shared=True) as (catalog, _):
        assert codes_of(await get(catalog, USER, handle=answer.handle, user_id="u1")) == ["ok"]
        for other in (Principal(owner_id="acme", agent_id="bob"), Principal(owner_id="other", agent_id="ann")):
            with pytest.raises(HandleRefused):
                await get(catalog, ANALYST, by=other, handle=answer.handle)
            with pytest.raises(HandleRefused):
                await ask(catalog, "fraud", by=other, handle=answer.handle)
            with pytest.raises(HandleRefused):
                await catalog.why(ANALYST, by=other, handle=answer.handle)


@pytest.mark.req("BEY-01")
async def test_routes_that_another_process_showed_are_valid_under_the_same_handle(tmp_path: Path) -> None:
    async with (
        catalog_at(tmp_path, WAREHOUSE, strict=True) as (here, _),
        catalog_at(tmp_path, WAREHOUSE, strict=True) as (there, _),
    ):
        handle = (await ask(here, "fraud")).handle
        assert codes_of(await get(there, ANALYST, handle=handle)) == ["ok"]
        assert codes_of(await get(here, USER, handle=handle, user_id="u1")) == ["ok"]


@pytest.mark.req("BEY-01")
async def test_questions_and_calls_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    @tool
    async def lead(to: int) -> GuidedContent:
        """Leads to one of many."""
        return GuidedContent(content="", guidance=[guide(f"maze://tools/hidden/room-{to}", "in there")])

    rooms = [some_tool(f"room-{at}", searchable=False) for at in range(60)]
    maze = Domain(name="maze", description="Rooms", tools=[lead, *rooms])
    async with catalog_at(tmp_path, maze, WAREHOUSE, strict=True) as (catalog, _):
        handle = (await ask(catalog, "rooms")).handle
        calls = [
            catalog.get([Item(route="maze://tools/lead", params={"to": at})], by=ME, handle=handle) for at in range(60)
        ]
        questions = [ask(catalog, f"question {at} about users", handle=handle) for at in range(20)]
        await asyncio.gather(*calls, *questions)
        results = [await get(catalog, f"maze://tools/hidden/room-{at}", handle=handle) for at in range(60)]
        assert [codes_of(each) for each in results] == [["ok"]] * 60


@pytest.mark.req("BEY-01")
async def test_a_handle_that_has_ended_is_refused_with_the_way_on(tmp_path: Path, clock: ManualClock) -> None:
    async with catalog_at(tmp_path, WAREHOUSE, clock=clock) as (catalog, _):
        handle = (await ask(catalog, "fraud")).handle
        clock.advance(seconds=LIFE.total_seconds() + 1)
        with pytest.raises(HandleRefused, match="Call `ask` without a handle"):
            await get(catalog, ANALYST, handle=handle)


STAFF = msgspec.structs.replace(ME, scopes=frozenset({"staff"}))


@pytest.mark.req("ERN-25")
async def test_counts_and_instructions_match_the_registry(tmp_path: Path) -> None:
    docs = Domain(name="docs", description="Handbook", resources=[page("a"), page("b")], scopes=frozenset({"staff"}))
    async with catalog_at(tmp_path, WAREHOUSE, SUPPORT, docs) as (catalog, _):
        counts = await catalog.counts()
        assert (counts.domain_count, counts.route_count, counts.resource_count) == (3, 7, 2)
        assert list(counts.domains) == ["warehouse", "support", "docs"]
        assert counts.route_count == catalog.registry.count_routes()
        told = await catalog.instructions(by=STAFF)
        assert "3 domains (warehouse, support, docs) with 6 routes and 2 resources" in told
        await catalog.remove("support")
        assert "2 domains (warehouse, docs) with 5 routes" in await catalog.instructions(by=STAFF)
        assert "docs" not in await catalog.instructions(by=ME)


@pytest.mark.req("ERN-25")
async def test_instructions_of_many_domains_stay_short(tmp_path: Path) -> None:
    domains = [Domain(name=f"domain-{at}", description="One of many") for at in range(200)]
    async with catalog_at(tmp_path, *domains) as (catalog, _):
        told = await catalog.instructions(by=ME)
        assert "200 domains" in told
        assert "and 170 more" in told
        assert len(told) < 1_200


@pytest.mark.req("ERN-05")
async def test_domains_are_listed_as_the_caller_sees_them(tmp_path: Path) -> None:
    closed = msgspec.structs.replace(SUPPORT, scopes=frozenset({"staff"}))
    async with catalog_at(tmp_path, WAREHOUSE, closed) as (catalog, _):
        (info,) = catalog.domains(by=ME)
        assert (info.name, list(info.entry_points), info.hidden) == ("warehouse", [ANALYST], 2)
        staff = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"staff"}))
        assert [each.name for each in catalog.domains(by=staff)] == ["warehouse", "support"]


@pytest.mark.req("ERN-01")
async def test_a_domain_that_cannot_be_added_leaves_the_catalog_as_it_was(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        with pytest.raises(AlreadyExists):
            await catalog.add(WAREHOUSE)
        twice = msgspec.structs.replace(WAREHOUSE, tools=[some_tool("a"), some_tool("a")])
        with pytest.raises(AlreadyExists):
            await catalog.replace(twice)
        assert routes_of(await ask(catalog, "orders")) == [ANALYST]
        await catalog.replace(msgspec.structs.replace(WAREHOUSE, tools=[some_tool("orders", "Looks at orders.")]))
        assert routes_of(await ask(catalog, "orders")) == ["warehouse://tools/orders"]
        await catalog.replace(SUPPORT)
        assert "support://tools/tickets" in routes_of(await ask(catalog, "orders"))
        with pytest.raises(NotFound):
            await catalog.remove("nothing")


async def test_a_resource_is_read_whole_by_who_may_see_it(tmp_path: Path, stranger: Principal) -> None:
    docs = Domain(name="docs", description="Handbook", resources=[page("a")], scopes=frozenset({"staff"}))
    staff = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"staff"}))
    async with catalog_at(tmp_path, docs) as (catalog, _):
        whole = await catalog.read("docs://resources/a", by=staff)
        assert (whole.content, list(whole.scopes)) == ("content of a", ["staff"])
        for by in (ME, stranger):
            with pytest.raises(NotFound):
                await catalog.read("docs://resources/a", by=by)
        with pytest.raises(InvalidInput):
            await catalog.read("docs", by=staff)


async def test_two_catalogs_over_one_trail_keep_their_owners_apart(tmp_path: Path, stranger: Principal) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (mine, trail):
        theirs = Catalog(trail, ManualClock(), owner=stranger)
        await theirs.add(SUPPORT)
        assert routes_of(await ask(mine, "complaints of customers")) == [ANALYST]
        assert routes_of(await ask(theirs, "fraud", by=stranger)) == ["support://tools/tickets"]
