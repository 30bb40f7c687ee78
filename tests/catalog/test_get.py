"""`get`: parallel execution, order of results, order of checks, and the code of each error."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.operations.answers import Item
from clew.errors import HandleRefused, InvalidInput, TooLarge
from clew.tools import Effects, ToolContext, tool
from tests.catalog.laboratory import content_of, failing, lab
from tests.tools.fraud import (
    ANALYST,
    ME,
    USER,
    WAREHOUSE,
    catalog_at,
    codes_of,
    get,
    messages_of,
    some_tool,
)


@pytest.mark.req("ERN-12")
async def test_entries_run_at_the_same_time(tmp_path: Path) -> None:
    here, there = asyncio.Event(), asyncio.Event()

    @tool
    async def one() -> str:
        """Waits for the other."""
        here.set()
        await there.wait()
        return "one"

    @tool
    async def other() -> str:
        """Waits for the one."""
        there.set()
        await here.wait()
        return "other"

    async with catalog_at(tmp_path, lab(one, other)) as (catalog, _):
        results = await get(catalog, "lab://tools/one", "lab://tools/other")
    assert [content_of(results, 0), content_of(results, 1)] == ["one", "other"]


@pytest.mark.req("ERN-12")
async def test_results_keep_the_order_of_entries_although_the_last_ends_first(tmp_path: Path) -> None:
    gates = [asyncio.Event() for _ in range(20)]
    gates[-1].set()

    @tool
    async def step(number: int) -> str:
        """Ends before the step before it."""
        await gates[number].wait()
        gates[number - 1].set()
        return str(number)

    async with catalog_at(tmp_path, lab(step)) as (catalog, _):
        items = [Item(route="lab://tools/step", params={"number": number}) for number in range(16)]
        gates[15].set()
        results = await catalog.get(items, by=ME)
    assert [content_of(results, at) for at in range(16)] == [str(at) for at in range(16)]


@pytest.mark.req("ERN-13")
@pytest.mark.req("ERN-14")
async def test_each_error_has_its_code_in_the_order_of_the_checks(tmp_path: Path) -> None:
    guarded = some_tool("guarded", scopes=["ops"])
    async with catalog_at(tmp_path, lab(guarded, failing("bad", ValueError("x"))), WAREHOUSE) as (catalog, _):
        items = [
            Item(route="lab:/bad", params={"odd": 1}),
            Item(route="lab://tools/nothing", params={"odd": 1}),
            Item(route="nowhere://tools/bad", params={"odd": 1}),
            Item(route="lab://resources/nothing", params={"odd": 1}),
            Item(route="lab://tools/guarded", params={"odd": 1}),
            Item(route="lab://tools/bad", params={"odd": 1}),
            Item(route=USER, params={"user_id": 5}),
            Item(route="lab://tools/bad"),
            Item(route=ANALYST),
        ]
        results = await catalog.get(items, by=ME)
    assert codes_of(results) == [
        "INVALID_ROUTE",
        "NOT_FOUND",
        "NOT_FOUND",
        "NOT_FOUND",
        "ACCESS_DENIED",
        "INVALID_PARAMS",
        "INVALID_PARAMS",
        "EXECUTION_ERROR",
        "ok",
    ]
    assert (results.summary.total, results.summary.success, results.summary.failed) == (9, 1, 8)
    assert [each.route for each in results.results] == [item.route for item in items]
    assert all((each.data is None) != (each.error is None) for each in results.results)
    assert all("\n" not in message for message in messages_of(results))
    assert results.markdown.count("## ") == 9
    assert "1 of 9 routes succeeded" in results.markdown


@pytest.mark.req("PLA-08")
async def test_arguments_that_do_not_fit_never_reach_the_tool(tmp_path: Path) -> None:
    ran: list[int] = []

    @tool
    async def count(number: int) -> str:
        """Counts."""
        ran.append(number)
        return ""

    async with catalog_at(tmp_path, lab(count)) as (catalog, _):
        wrong: list[dict[str, Any]] = [{}, {"number": "1"}, {"number": 1, "more": 2}, {"number": None}, {"number": 1.5}]
        results = await catalog.get([Item(route="lab://tools/count", params=params) for params in wrong], by=ME)
        assert codes_of(results) == ["INVALID_PARAMS"] * 5
        assert ran == []
        assert codes_of(await get(catalog, "lab://tools/count", number=3)) == ["ok"]
        assert ran == [3]


@pytest.mark.req("ERN-13")
@pytest.mark.parametrize(
    ("route", "code"),
    [
        ("w\u0430rehouse://tools/analyst", "INVALID_ROUTE"),
        ("warehouse://tools/an\u200balyst", "INVALID_ROUTE"),
        ("warehouse://tools/Analyst", "NOT_FOUND"),
        ("warehouse://tools/%61nalyst", "NOT_FOUND"),
        ("warehouse://tools/analyst%00", "NOT_FOUND"),
        ("warehouse://tools/hidden/../analyst", "INVALID_ROUTE"),
        ("\ud800", "INVALID_ROUTE"),
        ("x" * 5_000, "INVALID_ROUTE"),
        ("`## Forged\n\n# heading", "INVALID_ROUTE"),
    ],
)
async def test_a_route_that_only_looks_like_one_runs_nothing(tmp_path: Path, route: str, code: str) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        results = await get(catalog, route, ANALYST)
    assert codes_of(results) == [code, "ok"]
    assert "\n# heading" not in results.markdown
    assert len(messages_of(results)[0]) < 500


async def test_a_misspelled_route_is_answered_with_the_nearest_entry_point(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        results = await get(catalog, "warehouse://tools/analist", "warehouse://tools/hidden/fincrim")
    assert messages_of(results)[0] == f"there is no warehouse://tools/analist. Did you mean {ANALYST}?"
    assert "fincrime" not in messages_of(results)[1]


@pytest.mark.req("ERN-12")
@pytest.mark.req("ERN-05")
async def test_hidden_routes_run_as_well_and_reach_the_client_of_their_domain(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        results = await get(catalog, USER, user_id="u1")
    assert content_of(results) == "user u1: risk 91"


@pytest.mark.req("ERN-21")
async def test_a_route_is_denied_to_who_holds_only_one_of_its_scopes(tmp_path: Path) -> None:
    domain = lab(some_tool("care", scopes=["support"]), scopes=frozenset({"internal"}))
    async with catalog_at(tmp_path, domain) as (catalog, _):
        codes = {}
        for scopes in [(), ("internal",), ("support",), ("internal", "support")]:
            by = Principal(owner_id="acme", agent_id="ann", scopes=frozenset(scopes))
            codes[scopes] = codes_of(await get(catalog, "lab://tools/care", by=by))[0]
    assert codes == {
        (): "ACCESS_DENIED",
        ("internal",): "ACCESS_DENIED",
        ("support",): "ACCESS_DENIED",
        ("internal", "support"): "ok",
    }


async def test_nothing_runs_for_another_owner(tmp_path: Path, stranger: Principal) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        results = await get(catalog, ANALYST, USER, "warehouse://resources/a", by=stranger)
        assert codes_of(results) == ["NOT_FOUND"] * 3
        assert "Did you mean" not in results.markdown


async def test_a_batch_has_at_least_one_entry_and_an_end(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        with pytest.raises(InvalidInput, match="routes: is empty"):
            await catalog.get([], by=ME)
        with pytest.raises(TooLarge):
            await get(catalog, *[ANALYST] * 51)
        assert (await get(catalog, *[ANALYST] * 50)).summary.success == 50
        with pytest.raises(HandleRefused):
            await get(catalog, ANALYST, handle="clew-invented")


async def test_progress_is_reported_after_each_entry(tmp_path: Path) -> None:
    told: list[tuple[float, float | None, str]] = []

    async def report(done: float, total: float | None, message: str) -> None:
        told.append((done, total, message))

    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        await catalog.get([Item(route=ANALYST), Item(route="nö")], by=ME, report=report)
    assert sorted(told) == [(1, 2, told[0][2]), (2, 2, told[1][2])]


async def test_a_tool_tells_its_own_progress(tmp_path: Path) -> None:
    @tool
    async def slowly(ctx: ToolContext) -> str:
        """Do it in steps."""
        assert ctx.report is not None
        for step in (1, 2):
            await ctx.report(step, 2, f"step {step}")
        return "done"

    told: list[tuple[float, float | None, str]] = []

    async def report(done: float, total: float | None, what: str) -> None:
        told.append((done, total, what))

    async with catalog_at(tmp_path, Domain(name="work", description="Work", tools=[slowly])) as (catalog, _):
        await catalog.get([Item(route="work://tools/slowly")], by=ME, report=report)

    assert told == [
        (0.5, 1, "work://tools/slowly: step 1"),
        (0.99, 1, "work://tools/slowly: step 2"),
        (1, 1, "work://tools/slowly"),
    ]


async def test_a_tool_that_destroys_needs_a_curator(tmp_path: Path) -> None:
    @tool(effects=Effects(destroys=True))
    async def wipe() -> str:
        """Remove everything."""
        return "gone"

    reader = msgspec.structs.replace(ME, roles=frozenset({"subscriber"}))
    async with catalog_at(tmp_path, Domain(name="work", description="Work", tools=[wipe])) as (catalog, _):
        refused = await catalog.get([Item(route="work://tools/wipe")], by=reader)
        allowed = await catalog.get([Item(route="work://tools/wipe")], by=ME)

    assert refused.results[0].error is not None
    assert refused.results[0].error.code == "ACCESS_DENIED"
    assert allowed.results[0].success
